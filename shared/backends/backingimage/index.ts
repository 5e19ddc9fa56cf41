// The backingimage backend: golden images as Longhorn's backing images, each with a storage class for its volumes.
import { virtualMachineBackups } from '#shared/api/foreign/backup.ts';
import { persistentVolumeClaims, persistentVolumes, storageClasses } from '#shared/api/foreign/core.ts';
import { harvesterImageKind } from '#shared/api/harvester/image.ts';
import { backingImages, type BackingImage } from '#shared/api/foreign/longhorn.ts';
import type { Backend, Image } from '#shared/backends/backend.ts';
import { need, type ObservedBackingImage, check } from '#shared/backends/backingimage/observed.ts';
import { longhornSources } from '#shared/backends/backingimage/origin.ts';
import { filledState, initialize, planDelete } from '#shared/backends/backingimage/plan.ts';
import { mutator, validator } from '#shared/backends/backingimage/validator.ts';
import type { ImageState } from '#shared/populate/filled.ts';
import { foldCopies } from '#shared/backends/backingimage/copies.ts';
import { follow, type WatchedChild } from '#shared/populate/watched-child.ts';

// The children the backingimage backend watches.

/**
 * Whether the change is relevant: a copy makes progress, the first is ready, or the last has ended. The creation is known, a wait is already
 * reported by the image, and further copies change nothing.
 */
const isNews = (image: BackingImage): boolean => {
  if (image.metadata.deletionTimestamp !== undefined) return true;
  const copies = foldCopies(image);
  switch (copies.is) {
    case 'failed':
      return true;
    case 'ready':
      return !image.status?.virtualSize || !image.status.checksum || readyOnes(image) === 1;
    case 'running':
      return copies.step === 'handing-over' || (copies.step === 'moving' && copies.percent > 0);
  }
};

const readyOnes = ({ status }: BackingImage): number =>
  Object.values(status?.diskFileStatusMap ?? {}).filter(({ state }) => state === 'ready').length;

const watchedChildren: readonly WatchedChild[] = [
  follow(backingImages, ['create', 'patch', 'delete'], isNews),
  // Only its deletion is relevant: it is created again.
  follow(storageClasses, ['create', 'delete'], () => false),
];

const updateVirtualSize = ({ state }: Image, { backingImage }: ObservedBackingImage): ImageState | undefined => {
  const isMissing = state.phase === 'Available' && state.inspection?.virtualSize === undefined;
  return isMissing && backingImage?.status?.virtualSize ? filledState(state, backingImage) : undefined;
};

const reads = [
  backingImages,
  persistentVolumeClaims,
  persistentVolumes,
  storageClasses,
  harvesterImageKind.type,
  virtualMachineBackups,
];

export const backingImage: Backend<ObservedBackingImage> = {
  capabilities: { sources: longhornSources, encrypts: true, uploadsWhole: true },
  needs: need,
  check,
  initialize,
  updateVirtualSize,
  delete: planDelete,
  rootDiskOf: ({ state }) => ({ is: 'class', className: state.storageClassName ?? '' }),
  watchedChildren,
  reads: reads,
  validator,
  mutator,
};
