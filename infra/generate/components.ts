// Optional components of the installation: for a cluster with a CDI, everything of its kinds is removed; and an NFS export as backup target.
// Called by kustomize.ts.
import { parseAllDocuments } from 'yaml';
import { eventFunctions } from '#infra/generate/event-functions.ts';
import { type GeneratedManifest, partOf, add, patch } from '#infra/generate/manifest.ts';
import type { Outputs } from '#infra/generate/outputs.ts';
import { single } from '#infra/generate/single.ts';
import { admissionFunctions } from '#infra/generate/wiring.ts';
import { cdiGroup } from '#shared/api/cdi/names.ts';
import { systemNamespace } from '#shared/api/names.ts';
import { qemuUser } from '#shared/populate/job/transfer-job.ts';

interface Webhooks extends GeneratedManifest {
  readonly webhooks: readonly { readonly rules: readonly { readonly apiGroups: readonly string[] }[] }[];
}

const setting = { name: 'CDI', value: 'use' };

/** The CRDs are those of CDI, its own admission validates its kinds, and our functions do not reconcile them. */
export const buildCdiPatches = (manifests: Outputs): readonly object[] => {
  const all = Object.values(manifests).flatMap((text) =>
    parseAllDocuments(text).map((document) => document.toJS() as GeneratedManifest),
  );
  return [
    ...all
      .filter(isDefinitionOfTheirs)
      .map(({ apiVersion, kind, metadata: { name } }) =>
        patch(kind, name, { $patch: 'delete', apiVersion, kind, metadata: { name } }),
      ),
    ...eventFunctions.map(({ name }) =>
      patch('Service', name, [add('/spec/template/spec/containers/0/env/-', setting)]),
    ),
    patch('Deployment', 'admission', {
      apiVersion: 'apps/v1',
      kind: 'Deployment',
      metadata: { name: 'admission', labels: partOf('admission') },
      spec: { template: { spec: { containers: admissionFunctions.map(({ name }) => ({ name, env: [setting] })) } } },
    }),
    patch('Deployment', single, [add('/spec/template/spec/containers/0/env/-', setting)]),
    ...all
      .filter(({ kind }) => kind.endsWith('WebhookConfiguration'))
      .map((manifest) => patch(manifest.kind, undefined, [ownKindsAlone(manifest as Webhooks)])),
  ];
};

const isDefinitionOfTheirs = ({ kind, metadata }: GeneratedManifest): boolean =>
  kind === 'CustomResourceDefinition' && metadata.name.endsWith(`.${cdiGroup}`);

/** The first webhook is for objects of served kinds; the others protect golden images, whatever their kind. */
const ownKindsAlone = ({ webhooks }: Webhooks): object => ({
  op: 'replace',
  path: '/webhooks/0/rules',
  value: webhooks[0]?.rules.filter(({ apiGroups }) => !apiGroups.includes(cdiGroup)),
});

/** An NFS export as backup target, mounted into the function that reads it. */
const name = 'bullion-backups';
const folder = '/backups';
/** Placeholders for the user's export: an overlay replaces them in the volume and in the mount path. */
const server = 'nas.example';
const path = '/export';

/**
 * Knative supports claims but no NFS volumes, and so does the namespace with its restricted Pod Security Standard. It is neither provisioned
 * nor reclaimed.
 */
export const buildExportVolume = (): readonly GeneratedManifest[] => [
  {
    apiVersion: 'v1',
    kind: 'PersistentVolume',
    metadata: { name, labels: partOf('backup-metadata') },
    spec: {
      // Ignored for NFS.
      capacity: { storage: '1Ti' },
      accessModes: ['ReadWriteMany'],
      persistentVolumeReclaimPolicy: 'Retain',
      storageClassName: '',
      mountOptions: ['hard'],
      nfs: { server, path },
    },
  },
  {
    apiVersion: 'v1',
    kind: 'PersistentVolumeClaim',
    metadata: { name, namespace: systemNamespace, labels: partOf('backup-metadata') },
    spec: {
      accessModes: ['ReadWriteMany'],
      storageClassName: '',
      volumeName: name,
      resources: { requests: { storage: '1Ti' } },
    },
  },
];

const container = '/spec/template/spec/containers/0';

/** The same user as for Jobs: each must be able to write to folders of the other. `at` is where a list takes one more. */
const exportMount = (at: '' | '/-'): readonly object[] => {
  const one = <T>(value: T): T | readonly T[] => (at === '' ? [value] : value);
  return [
    add(`${container}/env/-`, { name: 'BACKUP_NFS_FOLDER', value: folder }),
    add(`${container}/volumeMounts${at}`, one({ name: 'backups', mountPath: `${folder}/${server}${path}` })),
    add(`${container}/securityContext/runAsUser`, qemuUser),
    add(`${container}/securityContext/runAsGroup`, qemuUser),
    add(
      `/spec/template/spec/volumes${at}`,
      one({ name: 'backups', persistentVolumeClaim: { claimName: name, readOnly: false } }),
    ),
  ];
};

/** A Knative Service has no volumes of its own, the process with every function has a list of them. */
export const exportMountPatches: readonly object[] = [
  patch('Service', 'backup-metadata', exportMount('')),
  patch('Deployment', single, exportMount('/-')),
];
