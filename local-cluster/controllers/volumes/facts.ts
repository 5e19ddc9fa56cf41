// Properties of volumes and claims, with the defaults of Kubernetes for unset fields.
import type { PersistentVolume, PersistentVolumeClaim, StorageClass, VolumeMode } from '#shared/api/foreign/core.ts';
import { parseQuantity } from '#shared/api/quantity.ts';

export const volumeModeOf = (spec: { readonly volumeMode?: VolumeMode | undefined }): VolumeMode =>
  spec.volumeMode ?? 'Filesystem';

/** Empty for a volume without a CSI driver. */
export const driverOf = (volume: PersistentVolume): string => volume.spec.csi?.driver ?? '';
export const handleOf = (volume: PersistentVolume): string => volume.spec.csi?.volumeHandle ?? '';

/** Bytes. */
export const capacityOf = (volume: PersistentVolume): number => parseQuantity(volume.spec.capacity['storage']) ?? 0;

/** Bytes; `undefined` when the claim requests no valid size. */
export const requestedBytes = (claim: PersistentVolumeClaim): number | undefined => {
  const bytes = parseQuantity(claim.spec.resources?.requests?.['storage']);
  return bytes === 0 ? undefined : bytes;
};

/** Bytes in the status of a bound claim. */
export const grantedBytes = (claim: PersistentVolumeClaim): number =>
  parseQuantity(claim.status?.capacity?.['storage']) ?? 0;

export const isBound = (claim: PersistentVolumeClaim): boolean => claim.status?.phase === 'Bound';

/** On a claim of a WaitForFirstConsumer class: the node of its first pod, which allows it to be provisioned. */
export const selectedNode = 'volume.kubernetes.io/selected-node';

export const isWaitingForConsumer = (claim: PersistentVolumeClaim, storageClass: StorageClass): boolean =>
  storageClass.volumeBindingMode === 'WaitForFirstConsumer' && claim.metadata.annotations?.[selectedNode] === undefined;
