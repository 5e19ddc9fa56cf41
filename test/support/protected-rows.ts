// Objects that must not be pulled from under an image: for each rule a request that passes and one that does not. Asked of the function,
// and of API servers.
import { type Asked, type Draft, aHarvesterImage, aHyperCloudImage } from '#test/support/admission.ts';

export interface ProtectedRow {
  /** That of the rule. */
  readonly id: string;
  readonly what: string;
  /** What is in the cluster. */
  readonly given: readonly Draft[];
  /** Rights of the user, as `rightOf` writes them. */
  readonly rights?: readonly string[];
  readonly allowed: Asked;
  readonly denied: Asked;
  readonly says: RegExp;
}

type Loose = Record<string, unknown>;

const owned = (role: string, over: Loose = {}): Loose => ({
  namespace: 'default',
  labels: {
    'bullion.dev/owner-uid': 'uid-1',
    'bullion.dev/owner-kind': 'VirtualMachineImage.hypercloud.tmaxanc.com',
    'bullion.dev/role': role,
  },
  annotations: {
    'bullion.dev/owner-name': 'ubuntu',
    'bullion.dev/owner-namespace': 'default',
    'bullion.dev/populated': '{}',
    'harvesterhci.io/goldenImage': 'true',
  },
  ...over,
});

const image = aHyperCloudImage({ storageClassName: 'fast' }, { labels: { 'bullion.dev/storage-class': 'fast' } });
const gone = aHyperCloudImage({}, { uid: 'uid-7' });

const claim = (metadata: Loose = owned('volume'), spec: Loose = {}): Draft => ({
  apiVersion: 'v1',
  kind: 'PersistentVolumeClaim',
  metadata: { name: 'ubuntu-image-pvc', namespace: 'default', ...metadata },
  spec: { accessModes: ['ReadWriteOnce'], resources: { requests: { storage: '1Gi' } }, ...spec },
});
const dataVolume = (phase: string): Draft => ({
  apiVersion: 'cdi.kubevirt.io/v1beta1',
  kind: 'DataVolume',
  metadata: { name: 'golden', ...owned('volume') },
  spec: { source: { blank: {} }, storage: {} },
  status: { phase },
});
const storageClass = (name: string, metadata: Loose = {}, parameters: Loose = {}): Draft => ({
  apiVersion: 'storage.k8s.io/v1',
  kind: 'StorageClass',
  metadata: { name, ...metadata },
  provisioner: 'driver.longhorn.io',
  parameters,
});
const { namespace: _, ...ownedClass } = owned('class');
const imageClass = storageClass('lh-uid-1', ownedClass);
const templateVersion = (uid: string): Draft => ({
  apiVersion: 'harvesterhci.io/v1beta1',
  kind: 'VirtualMachineTemplateVersion',
  metadata: { name: 'web-1', namespace: 'default', uid },
});
const template = { apiVersion: 'harvesterhci.io/v1beta1', kind: 'VirtualMachineTemplateVersion', name: 'web-1' };
const unfinished = aHarvesterImage({}, { ownerReferences: [{ ...template, uid: 't-1' }] });
const ofTemplate = { ...unfinished, status: { storageClassName: 'lh-uid-2' } };
const machine = (claimName: string, metadata: Loose = {}): Draft => ({
  apiVersion: 'kubevirt.io/v1',
  kind: 'VirtualMachine',
  metadata: { name: 'vm', namespace: 'default', ...metadata },
  spec: { template: { spec: { volumes: [{ name: 'root', persistentVolumeClaim: { claimName } }] } } },
});
/** KubeVirt mounts the claim of that name. */
const machineOf = (dataVolume: string): Draft => ({
  ...machine(''),
  spec: { template: { spec: { volumes: [{ name: 'root', dataVolume: { name: dataVolume } }] } } },
});
const templates = (id: string): Loose => ({
  annotations: {
    'harvesterhci.io/volumeClaimTemplates': JSON.stringify([
      { metadata: { name: 'root', annotations: { 'harvesterhci.io/imageId': id } } },
    ]),
  },
});
const uid = 'vm-1';
const ofMachine = {
  ownerReferences: [{ apiVersion: 'kubevirt.io/v1', kind: 'VirtualMachine', name: 'vm', uid }],
};
const noted = {
  annotations: {
    'harvesterhci.io/owned-by': JSON.stringify([{ schema: 'kubevirt.io.virtualmachine', refs: ['any/vm'] }]),
  },
};
const withDisk: Loose = {
  annotations: { 'harvesterhci.io/volumeClaimTemplates': JSON.stringify([{ metadata: { name: 'made' } }]) },
};
const disk = (name: string): Draft => ({
  apiVersion: 'cdi.kubevirt.io/v1beta1',
  kind: 'DataVolume',
  metadata: { name, namespace: 'default' },
  spec: { source: { blank: {} }, storage: {} },
});

const secretParameters = (name: string, ...stages: readonly string[]): Loose =>
  Object.fromEntries(
    stages.flatMap((stage) => [
      [`csi.storage.k8s.io/${stage}-secret-name`, name],
      [`csi.storage.k8s.io/${stage}-secret-namespace`, 'default'],
    ]),
  );
const stages = ['provisioner', 'node-stage', 'node-publish'];
const encrypting = { encrypted: 'true', ...secretParameters('key', ...stages) };
const key = (name: string): Draft => {
  const secret = {
    apiVersion: 'v1',
    kind: 'Secret',
    metadata: { name, namespace: 'default' },
    data: { CRYPTO_KEY_VALUE: 'eA==' },
  };
  return secret;
};
const advised = (annotations: Record<string, string>, parameters: Loose = {}): { readonly object: Draft } => ({
  object: storageClass(
    'fast',
    {
      annotations: Object.fromEntries(
        Object.entries(annotations).map(([name, value]) => [`cdi.harvesterhci.io/${name}`, value]),
      ),
    },
    parameters,
  ),
});
const goodAdvice = { filesystemOverhead: '0.06', storageProfileVolumeModeAccessModes: '{"Block":["ReadWriteOnce"]}' };
const badAdvice: readonly (readonly [annotations: Record<string, string>, says: RegExp])[] = [
  [{ filesystemOverhead: '1.5' }, /filesystemOverhead\]: must be a share/],
  [{ storageProfileCloneStrategy: 'magic' }, /storageProfileCloneStrategy\]: must be copy/],
  [{ storageProfileCloneStrategy: 'snapshot' }, /storageProfileVolumeSnapshotClass\]: is required/],
  [{ storageProfileVolumeSnapshotClass: 'missing' }, /snapshot class "missing" does not exist/],
  [{ storageProfileVolumeModeAccessModes: '{"Block":["Any"]}' }, /storageProfileVolumeModeAccessModes\]: must be JSON/],
];

const exporting = aHarvesterImage({
  sourceType: 'export-from-volume',
  url: undefined,
  pvcName: 'root',
  pvcNamespace: 'default',
});
const isOver = (type: string): Draft => ({ ...exporting, status: { conditions: [{ type, status: 'True' }] } });
const exported: Loose = {
  labels: { 'bullion.dev/exporting': 'uid-2' },
  annotations: { 'bullion.dev/exporting': 'default/image-a' },
};

const withoutMark = claim(owned('volume', { annotations: { 'bullion.dev/owner-name': 'ubuntu' } }));
const withLabel = claim(owned('volume', { labels: { ...(owned('volume')['labels'] as object), mine: 'x' } }));

export const protectedRows: readonly ProtectedRow[] = [
  {
    id: 'D2',
    what: 'an image under a template version',
    given: [templateVersion('t-1')],
    allowed: { oldObject: aHarvesterImage() },
    denied: { oldObject: ofTemplate },
    says: /used by VirtualMachineTemplateVersion web-1/,
  },
  {
    id: 'P5',
    what: 'a disk of an image for who may not see it',
    given: [imageClass, image],
    rights: ['get virtualmachineimages other/*'],
    allowed: { object: claim({}, { storageClassName: 'standard' }) },
    denied: { object: claim({}, { storageClassName: 'lh-uid-1' }) },
    says: /user jane is not allowed to use the image of this class/,
  },
  {
    id: 'P6',
    what: 'the marks of a golden claim',
    given: [image],
    allowed: { oldObject: claim(), object: withLabel },
    denied: { oldObject: claim(), object: withoutMark },
    says: /metadata.annotations\[bullion.dev\/owner-namespace\]: marks what holds the image \S+\/ubuntu.*goldenImage/,
  },
  {
    id: 'P7',
    what: 'a golden claim under its image',
    given: [image],
    allowed: { oldObject: claim({}) },
    denied: { oldObject: claim() },
    says: /delete that image instead/,
  },
  {
    id: 'P7',
    what: 'the class of an image under it',
    given: [image],
    allowed: { oldObject: storageClass('mine') },
    denied: { oldObject: imageClass },
    says: /StorageClass lh-uid-1\S* holds the golden image/,
  },
  {
    id: 'P10',
    what: 'a golden data volume under its image',
    given: [image],
    allowed: { oldObject: dataVolume('ImportInProgress') },
    denied: { oldObject: dataVolume('Succeeded') },
    says: /delete that image instead/,
  },
  {
    id: 'P12',
    what: 'a machine that would write to a golden claim',
    given: [image, claim()],
    allowed: { object: machine('root-disk') },
    denied: { object: machine('ubuntu-image-pvc') },
    says: /volumes\[0\].persistentVolumeClaim.claimName: ubuntu-image-pvc is a golden image/,
  },
  {
    id: 'P12',
    what: 'the same by the name of its data volume',
    given: [image, claim()],
    allowed: { object: machineOf('root-disk') },
    denied: { object: machineOf('ubuntu-image-pvc') },
    says: /volumes\[0\].dataVolume.name: ubuntu-image-pvc is a golden image/,
  },
  {
    id: 'P12',
    what: 'a machine that comes to write to a golden claim',
    given: [image, claim()],
    allowed: { oldObject: machine('ubuntu-image-pvc'), object: machine('ubuntu-image-pvc', { labels: { a: 'b' } }) },
    denied: { oldObject: machine('root-disk'), object: machine('ubuntu-image-pvc') },
    says: /is a golden image/,
  },
  {
    id: 'P13',
    what: 'a machine made from an image its author may not see',
    given: [],
    rights: ['get virtualmachineimages open/*'],
    allowed: { object: machine('root', templates('open/leap')) },
    denied: { object: machine('root', templates('vault/leap')) },
    says: /user jane is not allowed to use the image vault\/leap/,
  },
  {
    id: 'P14',
    what: 'a storage class that images are kept in',
    given: [image],
    allowed: { oldObject: storageClass('slow') },
    denied: { oldObject: storageClass('fast') },
    says: /used by images: virtualmachineimage \S+\/ubuntu/,
  },
  {
    id: 'P15',
    what: 'a reserved storage class',
    given: [],
    allowed: { oldObject: storageClass('fast') },
    denied: {
      oldObject: storageClass('fast', { annotations: { 'harvesterhci.io/is-reserved-storageclass': 'true' } }),
    },
    says: /is reserved/,
  },
  {
    id: 'P8',
    what: 'a claim that an image is being made from',
    given: [exporting],
    allowed: { oldObject: claim({ name: 'spare' }) },
    denied: { oldObject: claim({ name: 'root', ...exported }) },
    says: /is being exported to the image \S+\/image-a: wait for its end/,
  },
  {
    id: 'P9',
    what: 'a claim under the machine that owns it',
    given: [machine('x', { uid })],
    allowed: { oldObject: claim({ name: 'root' }) },
    denied: { oldObject: claim({ name: 'root', ...ofMachine }) },
    says: /PersistentVolumeClaim \S+\/root is a disk of the virtual machine vm: take it out/,
  },
  {
    id: 'P9',
    what: 'a claim under the machine it is noted for',
    given: [machine('other')],
    allowed: { oldObject: claim({ name: 'root' }) },
    denied: { oldObject: claim({ name: 'root', ...noted }) },
    says: /is a disk of the virtual machine vm/,
  },
  {
    id: 'P9',
    what: 'a claim of ours under the machine that mounts it',
    given: [machine('root')],
    allowed: { oldObject: claim({ ...owned('disk'), name: 'spare' }) },
    denied: { oldObject: claim({ ...owned('disk'), name: 'root' }) },
    says: /is a disk of the virtual machine vm/,
  },
  {
    id: 'P11',
    what: 'a data volume that is made for a machine',
    given: [machine('root', withDisk)],
    allowed: { oldObject: disk('spare') },
    denied: { oldObject: disk('made') },
    says: /DataVolume \S+\/made is a disk of the virtual machine vm/,
  },
  {
    id: 'P16',
    what: 'encrypting classes from naming no Secret',
    given: [],
    allowed: { object: storageClass('fast', {}, encrypting) },
    denied: { object: storageClass('fast', {}, { encrypted: 'true', ...secretParameters('key', ...stages.slice(1)) }) },
    says: /provisioner-secret-name\]: and \S+ are required to encrypt/,
  },
  {
    id: 'P16',
    what: 'encrypting classes from naming two Secrets',
    given: [],
    allowed: { object: storageClass('fast', {}, { ...encrypting, ...secretParameters('key', 'node-expand') }) },
    denied: { object: storageClass('fast', {}, { ...encrypting, ...secretParameters('other', 'node-expand') }) },
    says: /node-expand-secret-name\]: names another Secret/,
  },
  {
    id: 'P18',
    what: 'advice from classes that cannot follow it',
    given: [],
    allowed: advised(goodAdvice),
    denied: advised(goodAdvice, { dataEngine: 'v1' }),
    says: /have no effect beside the parameter dataEngine=v1/,
  },
  ...badAdvice.map(([annotations, says]) => ({
    id: 'P19',
    what: `classes from advice such as ${JSON.stringify(annotations)}`,
    given: [],
    allowed: advised(goodAdvice),
    denied: advised(annotations),
    says,
  })),
  {
    id: 'P21',
    what: 'classes from holding disks where their machine runs',
    given: [],
    allowed: { object: storageClass('fast', {}, { dataLocality: 'best-effort' }) },
    denied: { object: storageClass('fast', {}, { dataLocality: 'strict-local' }) },
    says: /parameters\[dataLocality\]: must be disabled or best-effort/,
  },
  {
    id: 'P22',
    what: 'the key of an encrypting class',
    given: [storageClass('fast', {}, encrypting)],
    allowed: { oldObject: key('spare') },
    denied: { oldObject: key('key') },
    says: /Secret \S+\/key encrypts the volumes of storage class fast/,
  },
];

const account: Draft = {
  apiVersion: 'v1',
  kind: 'ServiceAccount',
  metadata: { name: 'quiet', namespace: 'default' },
};
const pod: Draft = {
  apiVersion: 'v1',
  kind: 'Pod',
  metadata: { name: 'writer', namespace: 'default' },
  spec: {
    serviceAccountName: 'quiet',
    containers: [{ name: 'a', image: 'a' }],
    volumes: [{ name: 'root', persistentVolumeClaim: { claimName: 'root' } }],
  },
  status: { phase: 'Running' },
};

/** What passes although it looks like what does not, or as the original would refuse it: `ids` of the rules. */
export interface ExemptRow {
  readonly ids: readonly string[];
  readonly what: string;
  readonly given: readonly Draft[];
  readonly asked: Asked;
}

const exempt = (ids: string, what: string, ...[given, asked]: [readonly Draft[], Asked]): ExemptRow => ({
  ids: ids.split(' '),
  what,
  given,
  asked,
});

export const exemptRows: readonly ExemptRow[] = [
  exempt('P7', 'a golden claim whose image is gone', [], { oldObject: claim() }),
  exempt('P7', 'a golden claim of an image whose name another one has taken', [gone], { oldObject: claim() }),
  exempt('P6', 'marks of a claim whose image is gone', [], { oldObject: claim(), object: withoutMark }),
  exempt('D2', 'a template version that was made anew', [templateVersion('t-2')], { oldObject: ofTemplate }),
  exempt('P14', 'a class whose images say another one', [aHyperCloudImage({}, image.metadata)], {
    oldObject: storageClass('fast'),
  }),
  exempt(
    'P14',
    'a class whose last image is on its way out',
    [{ ...image, metadata: { ...image.metadata, deletionTimestamp: '2026-01-01T00:00:00Z' } }],
    { oldObject: storageClass('fast') },
  ),
  exempt('P12', 'a machine that was imported whole', [image, claim()], {
    object: machine('ubuntu-image-pvc', { labels: { 'migration.harvesterhci.io/imported': 'true' } }),
  }),
  exempt('P13', 'a machine with notes that are no JSON', [], {
    object: machine('x', { annotations: { 'harvesterhci.io/volumeClaimTemplates': '{' } }),
  }),
  exempt('P5', 'a claim by a function of ours', [imageClass, image], {
    object: claim({}, { storageClassName: 'lh-uid-1' }),
    username: 'system:serviceaccount:bullion-system:initialize',
  }),
  exempt('C1', 'a display name that is no label value', [], {
    object: aHarvesterImage({ displayName: `Debian 12 (bookworm), 日本 ${'x'.repeat(70)}` }, { uid: undefined }),
  }),
  exempt('C20', 'an export of a claim that a running pod mounts', [account, claim({ name: 'root' }), pod], {
    object: aHarvesterImage(
      { backend: 'cdi', sourceType: 'export-from-volume', url: undefined, pvcName: 'root', pvcNamespace: 'default' },
      { uid: undefined },
    ),
  }),
  exempt('U10', 'an edit of an image whose display name another one has', [aHarvesterImage({}, { name: 'twin' })], {
    oldObject: aHarvesterImage(),
    object: aHarvesterImage({ description: 'x' }),
  }),
  exempt('U11', 'an edit of an image that could not be created today', [], {
    oldObject: aHarvesterImage({ url: 'nowhere' }),
    object: aHarvesterImage({ url: 'nowhere', description: 'x' }),
  }),
  exempt('D0 D1', 'an image that has no class yet, under a template version', [templateVersion('t-1')], {
    oldObject: unfinished,
  }),
  exempt('D0', 'an image that disks were copied from', [claim({ name: 'root' }, { storageClassName: 'fast' })], {
    oldObject: { ...aHarvesterImage({ backend: 'cdi' }), status: { storageClassName: 'fast' } },
  }),
  exempt('P1', 'a claim that only has the name of an image', [image], { oldObject: claim({ name: 'ubuntu' }) }),
  exempt('P2 P4', 'a claim of a class of others that is not there', [], {
    object: claim({}, { storageClassName: 'longhorn-static' }),
  }),
  exempt('P3', 'a claim for the state of a machine', [], {
    object: claim({}, { storageClassName: 'vmstate-persistence' }),
  }),
  exempt('P4', 'a claim that is bound by hand', [], { object: claim({}, { storageClassName: '' }) }),
  ...['Imported', 'RetryLimitExceeded'].map((type) =>
    exempt('P8', `a claim whose export has come to its end (${type})`, [isOver(type)], {
      oldObject: claim({ name: 'root', ...exported }),
    }),
  ),
  exempt('P8', 'a claim whose image is gone', [], { oldObject: claim({ name: 'root', ...exported }) }),
  exempt('P9', 'a claim of a machine that was made anew', [machine('x', { uid: 'vm-2' })], {
    oldObject: claim({ name: 'root', ...ofMachine }),
  }),
  exempt(
    'P9',
    'a claim of a machine on its way out',
    [machine('root', { uid, deletionTimestamp: '2026-01-01T00:00:00Z' })],
    { oldObject: claim({ name: 'root', ...ofMachine }) },
  ),
  exempt('P9', 'a claim with notes that are no JSON', [machine('x')], {
    oldObject: claim({ name: 'root', annotations: { 'harvesterhci.io/owned-by': '{' } }),
  }),
  exempt('P17', 'a class of an unknown driver without advice', [], {
    object: { ...storageClass('fast'), provisioner: 'unknown.example' },
  }),
  exempt('P18', 'advice on a class of another driver', [], {
    object: { ...advised(goodAdvice, { dataEngine: 'v1' }).object, provisioner: 'other.example' },
  }),
  exempt('P21', 'a class that was there before', [], {
    oldObject: storageClass('fast', {}, { dataLocality: 'strict-local' }),
    object: storageClass('fast', { labels: { a: 'b' } }, { dataLocality: 'strict-local' }),
  }),
  exempt('H1', 'an image in a file system', [], {
    object: aHyperCloudImage({ pvc: { volumeMode: 'Filesystem', resources: { requests: { storage: '3Gi' } } } }),
  }),
  exempt('H4', 'a volume of an image that is not there yet', [], {
    object: {
      apiVersion: 'hypercloud.tmaxanc.com/v1alpha1',
      kind: 'VirtualMachinePvc',
      metadata: { name: 'disk', namespace: 'default' },
      spec: { virtualMachineImageName: 'later' },
    },
  }),
];
