// The references in the specs of the served kinds: every text of their schemas is either one of these references, or known to be none.
import { apiVersionOf } from '#shared/api/object.ts';
import { ownMarks } from '#shared/resources/protected/marks.ts';
import type { Loose } from '#test/support/admission.ts';
import { type Text, fieldOf, meaningOf, texts as allTexts } from '#test/support/texts.ts';
import { type Holds, type ObjectRow, draft, loot, victim } from '#test/tenants/row.ts';

export interface FieldRule {
  /** For a path without its kind. */
  readonly of: RegExp;
  readonly attack: string;
  readonly holds: Holds;
  readonly right?: string;
}

const clone = 'create datavolumes/source';
const elsewhere = 'an object of another namespace';
/** The first that matches `<kind> <path>` applies. Each must match something. */
export const fieldRules: readonly FieldRule[] = [
  { of: /hostPath\./, attack: 'read files of a node', holds: 'refused' },
  {
    of: /\.(imageio|vddk)\.|\.imageStream$/,
    attack: 'reach a source that is not served',
    holds: 'refused',
  },
  {
    of: /\.(pvc|storage)\.(volumeName|dataSource|dataSourceRef)\b|pvc\.volumeName$/,
    attack: 'take an existing volume',
    holds: 'refused',
  },
  {
    of: /^GoldenImagePolicy .*copies\.prewarm\[\]$/,
    attack: 'have a volume made in the storage class of an image of another tenant',
    holds: 'inert',
  },
  {
    of: /storageClassName$/i,
    attack: 'copy an image of another tenant by its storage class',
    holds: 'asked',
    right: 'get virtualmachineimages',
  },
  { of: /storageClassParameters\{\}$/, attack: 'have the storage read a Secret', holds: 'asked', right: 'get secrets' },
  {
    of: /(\burl|URL|source\.http|\.(checksums|signature))$/,
    attack: 'reach a metadata service through connections of Bullion',
    holds: 'refused',
  },
  {
    of: /^DataVolume .*source\.(pvc|snapshot)\.|^DataVolume .*sourceRef\./,
    attack: `clone ${elsewhere}`,
    holds: 'asked',
    right: clone,
  },
  {
    of: /^DataSource .*source\.(pvc|snapshot)\./,
    attack: `learn about ${elsewhere} from status and labels`,
    holds: 'asked',
    right: clone,
  },
  {
    of: /^DataSource .*source\.dataSource\./,
    attack: `learn about ${elsewhere} from status and labels`,
    holds: 'inert',
  },
  { of: /^DataImportCron .*source\.pvc\./, attack: `follow and clone ${elsewhere}`, holds: 'inert' },
  {
    of: /^DataImportCron .*template\.metadata\.(labels|annotations)\{\}$/,
    attack: 'have the account of Bullion write the marks of a golden volume',
    holds: 'inert',
  },
  {
    of: /^VirtualMachineImage .*(pvcName|pvcNamespace)$/,
    attack: `export ${elsewhere}`,
    holds: 'asked',
    right: 'get persistentvolumeclaims',
  },
  {
    of: /securityParameters\.sourceImage/,
    attack: `copy ${elsewhere}`,
    holds: 'asked',
    right: 'get virtualmachineimages',
  },
  { of: /virtualMachineImage\.namespace$/, attack: `copy ${elsewhere}`, holds: 'refused' },
  {
    of: /(secretRef|signingSecretRef|certConfigMap|secretExtraHeaders\[\])$/,
    attack: 'use credentials or certificates of another namespace',
    holds: 'own',
  },
  {
    of: /(bucketName|objectName)$/,
    attack: 'read or write objects of another namespace in the object store',
    holds: 'own',
  },
  {
    of: /(managedDataSource|imageName|pvcName|virtualMachineImageName|virtualMachineImage\.name|virtualMachineVolume\.name)$/i,
    attack: `use ${elsewhere} by its name`,
    holds: 'own',
  },
  {
    of: /^GoldenImagePolicy .*(names\[\]|matchLabels\{\}|channels\[\]\.(name|dataSource)|replacement)$/,
    attack: `roll out or move ${elsewhere} by its name`,
    holds: 'own',
  },
  {
    of: /^GoldenImagePolicy .*checks\[\]\.name$/,
    attack: `name ${elsewhere} in a field that refers to no object`,
    holds: 'inert',
  },
  {
    of: /^GoldenImagePolicy .*(\.configMap|KeyRef\.name|imagePullSecrets\[\]\.name)$/,
    attack: 'trust keys of another namespace, or pass a Secret of it to their own Job',
    holds: 'own',
  },
  {
    of: /serviceAccountName$/,
    attack: 'have a pod of Bullion run with the rights of another tenant',
    holds: 'own',
  },
  {
    of: /(priorityClassName|volumeAttributesClassName|snapshotClassName)$/,
    attack: 'name a cluster-wide object, as they may on their own pods and claims',
    holds: 'inert',
  },
];

/** For kinds that a tenant can create: cluster-scoped ones are managed by administrators. */
export const texts: readonly Text[] = allTexts.filter(({ kind }) => kind.type.namespaced);

/** It may refer to something of other users. */
export const isReference = (text: Text): boolean => [undefined, 'url', 'place'].includes(meaningOf(text));
export const ruleOf = (text: Text): FieldRule | undefined => fieldRules.find(({ of }) => of.test(fieldOf(text)));

const storage = { storage: { resources: { requests: { storage: '1Gi' } } } };
const url = 'https://images.example/disk.qcow2';
const metadataService = 'http://169.254.169.254/latest/disk';

/** Valid sources by their type, with the fields that are tested. */
const sources: Readonly<Record<string, Loose>> = {
  http: { http: { url } },
  registry: { registry: { url: 'docker://registry.example/disk:1' } },
  s3: { s3: { url: 'https://store.example/bucket/disk' } },
  gcs: { gcs: { url: 'gs://bucket/disk' } },
  pvc: { pvc: { namespace: victim, name: loot } },
  snapshot: { snapshot: { namespace: victim, name: loot } },
  dataSource: { dataSource: { namespace: victim, name: loot } },
  imageio: { imageio: { url, diskId: 'd' } },
  vddk: { vddk: { url, uuid: 'u', backingFile: 'f', thumbprint: 't', secretRef: 's' } },
};
const sourceAt = (path: string): Loose => sources[/source\.(\w+)/.exec(path)?.[1] ?? ''] ?? { http: { url } };

/** The claim's own source, where the path is in it. */
const claimSourceAt = (path: string): Loose => {
  const field = /\.(dataSource(?:Ref)?)\./.exec(path)?.[1];
  return field === undefined ? {} : { [field]: { kind: 'PersistentVolumeClaim', name: loot } };
};

const keys = { configMap: 'mine' };
const signatureAt = (path: string): Loose => {
  if (path.includes('trustRoot'))
    return { cosign: { identities: [{ issuer: 'https://issuer.example', subject: 'me' }], trustRoot: keys } };
  if (path.includes('cosign')) return { cosign: { keys } };
  return path.includes('gpg') ? { gpg: { keys } } : { minisign: { keys } };
};

const checkAt = (path: string): Loose => ({
  name: 'scan',
  image: 'registry.example/scan',
  ...(path.includes('KeyRef')
    ? { env: [{ name: 'A', valueFrom: { [path.split('.').at(-2) ?? '']: { key: 'a' } } }] }
    : {}),
});

/** A valid spec of the kind, in the form that has the field. */
const bases: Readonly<Record<string, (path: string) => Loose>> = {
  'VirtualMachineImage.hypercloud.tmaxanc.com': (path) => ({
    source: path.includes('hostPath')
      ? { hostPath: { path: '/etc/shadow', nodeName: 'n' } }
      : path.includes('objectStore')
        ? { objectStore: { bucketName: 'bucket', objectName: 'disk' } }
        : { http: url },
    pvc: storage.storage,
  }),
  'VirtualMachineImage.harvesterhci.io': (path) => {
    const spec = { backend: 'csi', displayName: 'mine', sourceType: 'download', url, retry: 3 };
    // This backend copies across namespaces.
    const copying = { ...spec, backend: 'cdi', url: undefined };
    if (/pvcName/.test(path))
      return { ...copying, sourceType: 'export-from-volume', pvcName: loot, pvcNamespace: victim };
    if (path.includes('storageClassParameters')) return { ...spec, backend: 'backingimage' };
    const of = { sourceImageName: loot, sourceImageNamespace: victim };
    return path.includes('security') ? { ...copying, sourceType: 'clone', securityParameters: of } : spec;
  },
  'VirtualMachineImageDownloader.harvesterhci.io': () => ({ imageName: 'mine' }),
  'DataSource.cdi.kubevirt.io': (path) => ({ source: sourceAt(path) }),
  'DataImportCron.cdi.kubevirt.io': (path) => ({
    schedule: '0 0 * * *',
    managedDataSource: 'mine',
    ...(path.startsWith('spec.source') ? { source: sourceAt(path) } : {}),
    template: {
      spec: path.startsWith('spec.source')
        ? storage
        : { source: /template.*source/.test(path) ? sourceAt(path) : sources['registry'], ...storage },
    },
  }),
  'VirtualMachinePvc.hypercloud.tmaxanc.com': () => ({
    virtualMachineImageName: 'mine',
    pvc: { accessModes: ['ReadWriteOnce'], ...storage.storage },
  }),
  'VirtualMachineVolume.hypercloud.tmaxanc.com': () => ({
    virtualMachineImage: { name: 'mine' },
    capacity: { storage: '1Gi' },
  }),
  'VirtualMachineVolumeExport.hypercloud.tmaxanc.com': (path) => ({
    ...(path.includes('virtualMachineVolume') ? { virtualMachineVolume: { name: loot } } : { pvcName: loot }),
    destination: path.includes('s3')
      ? { s3: { url: 'https://store.example/bucket/disk', secretRef: 's' } }
      : path.includes('registry')
        ? { registry: { url: 'docker://registry.example/disks/mine:1', secretRef: 's' } }
        : { local: {} },
    ...(path.includes('objectStore')
      ? { destination: undefined, objectStore: { bucketName: 'bucket', objectName: 'o' } }
      : {}),
  }),
  'GoldenImagePolicy.bullion.dev': (path) => ({
    dataImportCrons: path.includes('matchLabels') ? {} : { names: ['mine'] },
    channels: [{ name: 'stable', dataSource: 'mine' }],
    ...(path.includes('verify.signature') ? { verify: { signature: signatureAt(path) } } : {}),
    ...(path.includes('verify.checks') ? { verify: { checks: [checkAt(path)] } } : {}),
    ...(path.includes('deprecated[]') ? { deprecated: [{ channel: 'stable', reason: 'old' }] } : {}),
  }),
  'DataVolume.cdi.kubevirt.io': (path) => ({
    ...(path.startsWith('spec.sourceRef')
      ? { sourceRef: { kind: 'DataSource', namespace: victim, name: loot } }
      : { source: path.startsWith('spec.source') ? sourceAt(path) : { blank: {} } }),
    ...(path.startsWith('spec.pvc')
      ? { pvc: { accessModes: ['ReadWriteOnce'], ...storage.storage, ...claimSourceAt(path) } }
      : { storage: { ...storage.storage, ...claimSourceAt(path) } }),
  }),
};

const valueFor = (path: string): unknown => {
  const last = path.split('.').at(-1) ?? '';
  if (/namespace$/i.test(last)) return victim;
  if (/storageClassName$|prewarm/i.test(last)) return 'lh-victim';
  if (/^(url|http|checksums|signature)$|URL$/.test(last))
    return path.includes('registry') ? `${metadataService.replace('http', 'docker')}:1` : metadataService;
  if (last === 'matchLabels{}') return { name: loot };
  if (last === 'labels{}') return Object.fromEntries(ownMarks.labels.map((key) => [key, loot]));
  if (last === 'annotations{}') return forgedAnnotations;
  if (last === 'storageClassParameters{}')
    return {
      'csi.storage.k8s.io/node-publish-secret-name': loot,
      'csi.storage.k8s.io/node-publish-secret-namespace': victim,
    };
  return last === 'objectName' ? `${loot}.qcow2` : loot;
};

export const forgedGrant = JSON.stringify(
  ['clone-claim', 'clone-snapshot', 'export-claim', 'use-image', 'read-secret'].map((use) => ({
    use,
    namespace: victim,
    name: '*',
  })),
);
export const forgedAnnotations = {
  ...Object.fromEntries(ownMarks.annotations.map((key) => [key, loot])),
  'bullion.dev/owner-namespace': victim,
  'bullion.dev/granted': forgedGrant,
  'bullion.dev/populated': '{}',
};

const withValue = (spec: Loose, [step = '', ...rest]: readonly string[], value: unknown): Loose => {
  const key = step.replace(/\{\}$/, '');
  if (step.endsWith('[]')) {
    const name = step.slice(0, -2);
    const [first = {}] = (spec[name] ?? []) as readonly Loose[];
    return { ...spec, [name]: [rest.length === 0 ? value : withValue(first, rest, value)] };
  }
  return { ...spec, [key]: rest.length === 0 ? value : withValue((spec[key] ?? {}) as Loose, rest, value) };
};

export const fieldRows: readonly ObjectRow[] = texts.filter(isReference).flatMap((text) => {
  const { kind, path } = text;
  const rule = ruleOf(text);
  const name = `${kind.type.kind}.${kind.type.group}`;
  const base = bases[name];
  if (rule === undefined || base === undefined) return [];
  const spec = withValue(base(path), path.split('.').slice(1), valueFor(path));
  const { attack, holds, right } = rule;
  const drafted = (of: Loose) => draft(kind.type.kind, apiVersionOf(kind.type), of);
  // A field that is refused as a whole is not in the base of its parent.
  const without = (refused: string) => drafted(base(refused === path ? path : refused.replace(/\.[^.]+$/, '')));
  return [{ kind: name, reference: path, attack, holds, right, object: drafted(spec), without }];
});
