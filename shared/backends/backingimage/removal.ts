// Taking away what an image made of Longhorn: all of it at deletion, what is not worth keeping when the user starts it over. Pure.
import { storageClasses } from '#shared/api/foreign/core.ts';
import { type BackingImage, backingImages } from '#shared/api/foreign/longhorn.ts';
import { annotations } from '#shared/api/names.ts';
import { remove, removeWhole } from '#shared/backends/actions.ts';
import type { Plan, PlanContext } from '#shared/backends/backend.ts';
import { foldCopies } from '#shared/backends/backingimage/copies.ts';
import type { ObservedBackingImage } from '#shared/backends/backingimage/observed.ts';
import type { Image } from '#shared/backends/image.ts';
import { describeChild, restartedState, restartingState, terminatingState } from '#shared/backends/state.ts';

/**
 * The backing image first: Longhorn refuses that while a replica stands on it, and then the class must stay as well, or its volumes could not
 * grow any more.
 */
export const planDelete = (image: Image, observed: ObservedBackingImage): Plan & { readonly removed: boolean } => {
  if (observed.users.length > 0) return { actions: [], removed: false, state: inUse(image, observed.users) };
  const left = [observed.backingImage, observed.storageClass].filter((child) => child !== undefined);
  const message = left.length === 0 ? 'removed' : `waiting for ${left.map(describeChild).join(', ')} to go`;
  return {
    actions: [...removeWhole(backingImages, observed.backingImage), ...remove(storageClasses, observed.storageClass)],
    state: terminatingState(image.state, 'Terminating', message),
    removed: left.length === 0,
  };
};

const inUse = ({ state }: Image, users: readonly string[]) =>
  terminatingState(state, 'InUse', `used by ${users.join(', ')}: delete what was made from this image first`);

export interface Restart {
  readonly plan: Plan;
  /** The image as new, once nothing is in the way any more. */
  readonly cleared?: Image;
}

/**
 * A retry throws a backing image away unless its bytes are good: those are never fetched twice. Nor is one thrown away that was made for this very
 * retry by a pass whose status was lost.
 */
export const planRestart = (image: Image, observed: ObservedBackingImage, context: PlanContext): Restart => {
  const { backingImage } = observed;
  if (backingImage !== undefined && !isMadeFor(image, backingImage) && !isWorthKeeping(image, backingImage)) {
    const state = restartingState(image, [backingImage], context);
    return { plan: { actions: removeWhole(backingImages, backingImage), state } };
  }
  const { children, storageClassName } = image.state;
  const state = { ...restartedState(image), children, storageClassName };
  return { plan: { actions: [], state }, cleared: { ...image, state } };
};

const isMadeFor = ({ retryToken }: Image, { metadata }: BackingImage): boolean =>
  metadata.deletionTimestamp === undefined && metadata.annotations?.[annotations.retry] === retryToken;

const isWorthKeeping = ({ state }: Image, backingImage: BackingImage): boolean =>
  foldCopies(backingImage).is === 'ready' &&
  backingImage.metadata.deletionTimestamp === undefined &&
  state.reason !== 'ChecksumMismatch';
