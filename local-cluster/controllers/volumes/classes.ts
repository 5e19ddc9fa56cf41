// The storage classes of the local cluster and their drivers.
import { type CsiDriver, type StorageClass, csiDrivers, storageClasses } from '#shared/api/foreign/core.ts';
import { type VolumeSnapshotClass, volumeSnapshotClasses } from '#shared/api/foreign/snapshot.ts';
import { longhornDriver } from '#shared/api/foreign/longhorn.ts';
import type { KubeClient } from '#shared/clients/kube/client.ts';
import { isConflict } from '#shared/runtime/errors.ts';

/** Driver of `local` and `local-wffc`: snapshots, clones, expansion. */
export const directoryDriver = 'local.bullion.dev';
/** Driver of `local-plain`: volumes only, so that others must copy through a pod. */
export const plainDriver = 'plain.local.bullion.dev';

export const isOurDriver = (driver: string): boolean => driver === plainDriver || canCopy(driver);
export const canCopy = (driver: string): boolean => driver === directoryDriver || driver === longhornDriver;

/** Marks the default of storage classes and of snapshot classes. */
export const defaultClassAnnotations = {
  storage: 'storageclass.kubernetes.io/is-default-class',
  snapshot: 'snapshot.storage.kubernetes.io/is-default-class',
} as const;

const storageClass = (
  name: string,
  fields: Partial<StorageClass> & { readonly provisioner: string },
): StorageClass => ({
  apiVersion: 'storage.k8s.io/v1',
  kind: 'StorageClass',
  metadata: {
    name,
    ...(name === 'local' ? { annotations: { [defaultClassAnnotations.storage]: 'true' } } : {}),
  },
  reclaimPolicy: 'Delete',
  allowVolumeExpansion: true,
  volumeBindingMode: 'Immediate',
  ...fields,
});

const localClasses: readonly StorageClass[] = [
  storageClass('local', { provisioner: directoryDriver }),
  storageClass('local-wffc', { provisioner: directoryDriver, volumeBindingMode: 'WaitForFirstConsumer' }),
  storageClass('local-plain', { provisioner: plainDriver }),
];

/** Claims that a populator fills are left to it by CSI drivers only. */
const driver = (name: string): CsiDriver => ({
  apiVersion: 'storage.k8s.io/v1',
  kind: 'CSIDriver',
  metadata: { name },
  spec: { attachRequired: false },
});

const localSnapshotClass: VolumeSnapshotClass = {
  apiVersion: 'snapshot.storage.k8s.io/v1',
  kind: 'VolumeSnapshotClass',
  metadata: { name: 'local', annotations: { [defaultClassAnnotations.snapshot]: 'true' } },
  driver: directoryDriver,
  deletionPolicy: 'Delete',
};

/** Creates missing classes; ones that a user changed are kept. The snapshot CRDs must be installed. */
export const ensureClasses = async (kube: KubeClient): Promise<void> => {
  const existsAlready = (error: unknown): void => {
    if (!isConflict(error)) throw error;
  };
  for (const name of [directoryDriver, plainDriver]) await kube.create(csiDrivers, driver(name)).catch(existsAlready);
  for (const item of localClasses) await kube.create(storageClasses, item).catch(existsAlready);
  await kube.create(volumeSnapshotClasses, localSnapshotClass).catch(existsAlready);
};
