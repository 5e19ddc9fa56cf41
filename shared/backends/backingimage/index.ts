// The backingimage backend: golden images as Longhorn's backing images, with a storage class of their own that volumes are made with.
import { virtualMachineBackups } from '#shared/api/foreign/backup.ts';
import { persistentVolumeClaims, persistentVolumes, storageClasses } from '#shared/api/foreign/core.ts';
import { harvesterImageKind } from '#shared/api/harvester/image.ts';
import { backingImages } from '#shared/api/foreign/longhorn.ts';
import type { ResourceType } from '#shared/api/object.ts';
import type { Backend } from '#shared/backends/backend.ts';
import { need } from '#shared/backends/backingimage/need.ts';
import { longhornSources } from '#shared/backends/backingimage/origin.ts';
import { filledState, initialize } from '#shared/backends/backingimage/plan.ts';
import { planDelete } from '#shared/backends/backingimage/removal.ts';
import { type ObservedBackingImage, check } from '#shared/backends/backingimage/observed.ts';
import { watchedChildren } from '#shared/backends/backingimage/watched-children.ts';
import { mutator, validator } from '#shared/backends/backingimage/validator.ts';
import type { Image, ImageState } from '#shared/backends/image.ts';

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
  capabilities: { sources: longhornSources, encrypts: true },
  needs: need,
  check,
  initialize,
  updateVirtualSize,
  delete: planDelete,
  rootDiskOf: ({ state }) => ({ is: 'class', className: state.storageClassName ?? '' }),
  watchedChildren,
  reads: reads.map((type) => type as unknown as ResourceType),
  validator,
  mutator,
};
