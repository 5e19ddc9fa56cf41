// A namespace of volumes and images with the same bytes, reconciled over an in-memory API: operations in progress end when a test says so.
import { type DataVolume, dataVolumeKind } from '#shared/api/cdi/data-volume.ts';
import { harvesterImageKind } from '#shared/api/harvester/image.ts';
import { hyperCloudImageKind } from '#shared/api/hypercloud/image.ts';
import { jobs, persistentVolumeClaims, pods } from '#shared/api/foreign/core.ts';
import { volumeSnapshotContents, volumeSnapshots } from '#shared/api/foreign/snapshot.ts';
import { type KubeObject, type ResourceType, apiVersionOf, refOf } from '#shared/api/object.ts';
import { reconcile } from '#shared/resources/reconcile.ts';
import { aHarvesterImage, aHyperCloudImage, aPod, aSuccess } from '#test/support/builders.ts';
import { createTestReconciler } from '#test/support/reconcile.ts';
import type { MemoryKube } from '#test/support/memory-kube.ts';
import type { ReconcileDeps } from '#shared/resources/deps.ts';

export const namespace = 'golden';
const digest = `sha256:${'a'.repeat(64)}`;
const pinned = `docker://r.example/disk@${digest}`;
const hex = 'b'.repeat(64);

/**
 * A version of a cron, the volume of an `image` that uses it, or `plain`, from a registry; or from a file: a version, the `disk` of a machine,
 * one `late` for its consumer, and images that are volumes.
 */
export type Kind = 'golden' | 'image' | 'plain' | 'version' | 'disk' | 'late' | 'hypercloud' | 'harvester';

export interface Shared {
  readonly deps: ReconcileDeps;
  readonly kube: MemoryKube;
  readonly add: (name: string, storageClassName?: string, kind?: Kind) => KubeObject;
  readonly reconcileAll: (names: readonly string[]) => Promise<void>;
  /** Deleted, with all its dependents. */
  readonly remove: (name: string) => Promise<void>;
  /** Sources that a Job fetches or has fetched from. */
  readonly fetching: () => readonly string[];
  readonly phaseOf: (name: string) => string | undefined;
  readonly statuses: () => readonly unknown[];
  /** Completes all operations in progress: Jobs, claims that the storage fills, snapshots. */
  readonly fill: () => void;
  /** Jobs with that prefix fail permanently. */
  readonly fail: (prefix: string) => void;
}

const labelsOf = {
  golden: { 'cdi.kubevirt.io/dataImportCron': 'cron' },
  version: { 'cdi.kubevirt.io/dataImportCron': 'cron' },
  image: { 'bullion.dev/role': 'volume' },
  plain: {},
  disk: {},
  late: {},
} as const;

export const file = 'https://images.example/disk.img';
export const checksum = `sha256:${hex}`;

const ofFile: readonly Kind[] = ['version', 'disk', 'late'];

const dataVolume = (
  name: string,
  storageClassName: string,
  kind: keyof typeof labelsOf,
): KubeObject & { spec: object } => ({
  apiVersion: 'cdi.kubevirt.io/v1beta1',
  kind: 'DataVolume',
  metadata: {
    namespace,
    name,
    annotations: kind === 'late' ? {} : { 'cdi.kubevirt.io/storage.bind.immediate.requested': 'true' },
    labels: labelsOf[kind],
  },
  spec: {
    source: ofFile.includes(kind) ? { http: { url: file, checksum } } : { registry: { url: pinned } },
    storage: { storageClassName, resources: { requests: { storage: '1Gi' } } },
  },
});

const hyperCloudImage = (name: string, storageClassName: string): KubeObject & { spec: object } =>
  aHyperCloudImage({ metadata: { namespace, name }, spec: { storageClassName, checksum, source: { http: file } } });

const harvesterImage = (name: string, targetStorageClassName: string): KubeObject & { spec: object } => {
  const { spec, ...image } = aHarvesterImage({ metadata: { namespace, name } });
  return { ...image, spec: { ...spec, displayName: name, url: `${file}?mirror`, checksum, targetStorageClassName } };
};

const build = (name: string, storageClassName: string, kind: Kind): KubeObject => {
  if (kind === 'hypercloud') return hyperCloudImage(name, storageClassName);
  return kind === 'harvester' ? harvesterImage(name, storageClassName) : dataVolume(name, storageClassName, kind);
};

const types: readonly ResourceType[] = [dataVolumeKind, hyperCloudImageKind, harvesterImageKind].map(
  ({ type }) => type,
);
const typeOf = ({ kind, apiVersion }: Pick<KubeObject, 'kind' | 'apiVersion'>): ResourceType =>
  types.find((type) => type.kind === kind && apiVersionOf(type) === apiVersion)!;

const report = aSuccess({
  inspection: { format: 'raw', compression: 'none', virtualSize: 2 ** 29 },
  digests: { sha256: hex },
});

export const share = (): Shared => {
  const deps = createTestReconciler();
  const { kube } = deps;
  const all = (): readonly KubeObject[] => types.flatMap((type) => kube.all(type));
  const find = (name: string) => all().find(({ metadata }) => metadata.name === name);
  return {
    deps,
    kube,
    add: (name, storageClassName = 'local', kind = 'golden') => {
      const object = build(name, storageClassName, kind);
      return kube.seed(typeOf(object), object);
    },
    remove: async (name) => {
      const object = find(name);
      if (object === undefined) return;
      await kube.delete(typeOf(object), { namespace, name });
      for (let pass = 0; pass < 3; pass += 1) {
        await reconcile(deps, refOf(object), { which: 'all' });
        kube.collectGarbage();
      }
    },
    reconcileAll: async (names) => {
      const objects = all().filter(({ metadata }) => names.includes(metadata.name));
      await Promise.all(objects.map((object) => reconcile(deps, refOf(object), { which: 'all' })));
    },
    fetching: () =>
      kube
        .all(jobs)
        .filter(({ metadata }) => metadata.name.startsWith('import-'))
        .flatMap(({ spec }) => spec.template.spec.containers[0]?.env ?? [])
        .filter(({ name }) => name === 'BULLION_TRANSFER')
        .map(({ value }) => (JSON.parse(value ?? '') as { source: { type: string } }).source.type)
        .filter((type) => type !== 'volume'),
    statuses: () => all().map((object) => (object as DataVolume).status),
    fail: (prefix) => {
      for (const { metadata } of kube.all(jobs).filter((job) => job.metadata.name.startsWith(prefix)))
        kube.edit(jobs, { namespace, name: metadata.name }, (edited) => {
          edited.status = {
            failed: 4,
            conditions: [{ type: 'Failed', status: 'True', reason: 'BackoffLimitExceeded' }],
          };
        });
    },
    phaseOf: (name) => (find(name) as DataVolume | undefined)?.status?.phase,
    fill: () => {
      for (const { metadata } of kube.all(volumeSnapshots)) {
        const { name } = metadata;
        if (!kube.all(volumeSnapshotContents).some((content) => content.metadata.name === name))
          kube.seed(volumeSnapshotContents, {
            apiVersion: 'snapshot.storage.k8s.io/v1',
            kind: 'VolumeSnapshotContent',
            metadata: { name },
            spec: { driver: 'local.bullion.dev', deletionPolicy: 'Delete', sourceVolumeMode: 'Block' },
          } as never);
        kube.edit(volumeSnapshots, { namespace, name }, (snapshot) => {
          snapshot.status = { readyToUse: true, restoreSize: '1Gi', boundVolumeSnapshotContentName: name };
        });
      }
      for (const { metadata } of kube.all(persistentVolumeClaims))
        kube.edit(persistentVolumeClaims, { namespace, name: metadata.name }, (claim) => {
          claim.status = { phase: 'Bound', capacity: { storage: '1Gi' } };
        });
      for (const job of kube.all(jobs).filter(({ status }) => status?.succeeded === undefined)) {
        kube.edit(jobs, { namespace, name: job.metadata.name }, (edited) => {
          edited.status = { succeeded: 1, conditions: [{ type: 'Complete', status: 'True' }] };
        });
        const pod = aPod(job, 'a', 'Succeeded', { report });
        kube.seed(pods, { ...pod, metadata: { ...pod.metadata, namespace, uid: `pod-of-${job.metadata.name}` } });
      }
    },
  };
};
