// The children the backingimage backend follows.
import { storageClasses } from '#shared/api/foreign/core.ts';
import { type BackingImage, backingImages } from '#shared/api/foreign/longhorn.ts';
import type { WatchedChild } from '#shared/backends/backend.ts';
import { foldCopies } from '#shared/backends/backingimage/copies.ts';
import { follow } from '#shared/backends/watched-child.ts';

/**
 * Whether it tells anything new: a copy that moves, the first that is ready, the end of the last. That it was made is known, that it waits is
 * what its image says already, and further copies change nothing.
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

export const watchedChildren: readonly WatchedChild[] = [
  follow(backingImages, ['create', 'patch', 'delete'], isNews),
  // Only that it is gone matters: it is made again.
  follow(storageClasses, ['create', 'delete'], () => false),
];
