// The backingimage backend's decisions: make the backing image and its class, follow the copies, count attempts. Pure.
import { type StorageClass, storageClasses } from '#shared/api/foreign/core.ts';
import { type BackingImage, backingImages } from '#shared/api/foreign/longhorn.ts';
import { labels, annotations } from '#shared/api/names.ts';
import {
  type Action,
  create,
  patch,
  remove,
  removeWhole,
  type Plan,
  type PlanContext,
} from '#shared/populate/actions.ts';
import { foldCopies } from '#shared/backends/backingimage/copies.ts';
import { planFailed } from '#shared/backends/backingimage/following.ts';
import { planRunning } from '#shared/backends/backingimage/following.ts';
import { attemptOf, buildStorageClass, marksOf } from '#shared/backends/backingimage/manifests.ts';
import { parametersOf, secretProblem } from '#shared/backends/backingimage/parameters.ts';
import type { ObservedBackingImage } from '#shared/backends/backingimage/observed.ts';
import { halfSector } from '#shared/backends/backingimage/origin.ts';
import { planStart } from '#shared/backends/backingimage/starting.ts';
import { lostState } from '#shared/populate/loss.ts';
import { type ImageState, isRetryDue } from '#shared/populate/filled.ts';
import {
  countAttempts,
  failedState,
  isPast,
  retryHint,
  takenState,
  unchanged,
  usableState,
  waitingState,
  describeChild,
  restartedState,
  restartingState,
  terminatingState,
} from '#shared/populate/state.ts';
import type { Image } from '#shared/backends/image.ts';
import { roundToSector } from '#shared/transfer/format/disk.ts';

export const initialize = (image: Image, observed: ObservedBackingImage, context: PlanContext): Plan => {
  if (image.state.phase !== 'Available' && isRetryDue(image)) {
    const restart = planRestart(image, observed, context);
    return restart.cleared === undefined ? restart.plan : advance(restart.cleared, observed, context);
  }
  return image.state.phase === 'Failed' ? unchanged(image) : advance(image, observed, context);
};

const advance = (image: Image, observed: ObservedBackingImage, context: PlanContext): Plan => {
  const { backingImage, foreign } = observed;
  const wasUsable = image.state.phase === 'Available';
  if (backingImage === undefined || backingImage.metadata.deletionTimestamp !== undefined) {
    if (wasUsable) return planLost(image);
    if (foreign !== undefined) return { actions: [], state: takenState(image, foreign, context) };
    return backingImage === undefined
      ? planMissing(image, observed, context)
      : planLeaving(image, backingImage, context);
  }
  const plan = follow(known(image, backingImage), { ...observed, backingImage }, context);
  return { ...plan, actions: [...adoption(image, backingImage), ...plan.actions] };
};

/** What is there is written down, also where an earlier pass did not get to. */
const known = (image: Image, { metadata }: BackingImage): Image => ({
  ...image,
  state: { ...image.state, children: { ...image.state.children, backingImage: metadata.name } },
});

type Present = ObservedBackingImage & { readonly backingImage: BackingImage };

const follow = (image: Image, observed: Present, context: PlanContext): Plan => {
  const { backingImage } = observed;
  const copies = foldCopies(backingImage);
  switch (copies.is) {
    case 'ready':
      return planReady(image, observed, context);
    case 'failed':
      return image.state.phase === 'Available' ? planLost(image) : planFailed(image, backingImage, copies, context);
    case 'running':
      // A usable image stays so while a node is away.
      return image.state.phase === 'Available' ? unchanged(image) : planRunning(image, backingImage, copies, context);
  }
};

/** The time of the next attempt is kept, also when what failed went away by itself. */
const planMissing = (image: Image, observed: ObservedBackingImage, context: PlanContext): Plan => {
  const { nextAttemptTime } = image.state;
  const isTooEarly = nextAttemptTime !== undefined && !isPast(nextAttemptTime, context.now);
  return isTooEarly ? unchanged(image) : planStart(image, observed, context);
};

const planLost = (image: Image): Plan => ({
  actions: [],
  state: lostState(image, `BackingImage ${image.state.children?.backingImage ?? ''}`, image.source),
});

const planLeaving = (image: Image, { kind, metadata }: BackingImage, context: PlanContext): Plan => {
  const message = `${kind} ${metadata.name} is being deleted; starting again once it is gone`;
  const step = { phase: 'Pending', reason: 'ChildDeleted', message } as const;
  return { actions: [], state: waitingState(image, image.state, step, context) };
};

/** One that Harvester made has no marks of ours, and would not be followed. */
const adoption = (image: Image, backingImage: BackingImage): readonly Action[] =>
  backingImage.metadata.labels?.[labels.ownerUid] === undefined
    ? [patch(backingImages, backingImage, { metadata: marksOf(image, 'volume') })]
    : [];

const planReady = (image: Image, observed: Present, context: PlanContext): Plan => {
  const { backingImage, storageClass, foreign } = observed;
  const attempt = attemptOf(backingImage);
  const counted = countAttempts(image.state, { is: 'waiting', attempts: attempt, failures: attempt - 1 });
  const fault = checksumFault(image, backingImage);
  if (fault !== undefined) return { actions: [], state: failedState(counted, 'ChecksumMismatch', fault) };
  const unfit = sizeFault(image, backingImage);
  if (unfit !== undefined) return { actions: [], state: failedState(counted, 'UnsupportedFormat', unfit) };
  if (isUnproven(image, backingImage)) {
    const message = 'the copies are there; waiting for Longhorn to tell their sha512, which the image is held against';
    const step = { phase: 'Verifying', reason: 'Verifying', message } as const;
    return { actions: [], state: waitingState(image, { ...counted, progress: 99 }, step, context) };
  }
  if (storageClass === undefined && foreign !== undefined) {
    return { actions: [], state: takenState(image, foreign, context) };
  }
  const parameters = parametersOf(image, observed.template);
  const problem = storageClass === undefined ? secretProblem(image, parameters) : undefined;
  if (problem !== undefined) return { actions: [], state: failedState(counted, 'NotAuthorized', problem) };
  const made = storageClass ?? buildStorageClass(image, backingImage.metadata.name, parameters);
  return {
    actions: storageClass === undefined ? [create(storageClasses, made)] : [],
    state: usableState(image, { ...filledState(counted, backingImage), ...placeOf(counted, made) }),
  };
};

const placeOf = (state: ImageState, { metadata }: StorageClass): Pick<ImageState, 'storageClassName' | 'children'> => ({
  storageClassName: metadata.name,
  children: { ...state.children, storageClass: metadata.name },
});

/** What the backing image says of itself. Sizes are 0 until Longhorn knows them. */
export const filledState = (state: ImageState, { status = {} }: BackingImage): ImageState => {
  const [size, virtualSize] = [status.size || undefined, status.virtualSize || undefined];
  const format = virtualSize === undefined || virtualSize === size ? 'raw' : 'qcow2';
  return {
    ...state,
    lastFailure: undefined,
    inspection: { format, compression: 'none', size, virtualSize },
    ...(status.checksum ? { digests: { sha512: status.checksum } } : {}),
  };
};

/** What was promised cannot be told from what is there yet. A usable image was held against it once. */
const isUnproven = ({ checksum, state }: Image, { status }: BackingImage): boolean =>
  checksum?.algorithm === 'sha512' && !status?.checksum && state.phase !== 'Available';

/** Of a file whose length its server did not say beforehand, or that changed since it was looked at. qemu rounds the disk in a raw file up to whole sectors. */
const sizeFault = ({ state }: Image, { status = {} }: BackingImage): string | undefined => {
  const { size = 0, virtualSize = 0 } = status;
  const isRaw = size > 0 && roundToSector(size) === roundToSector(virtualSize);
  if (!isRaw || state.phase === 'Available') return undefined;
  const problem = halfSector(size);
  return problem === undefined ? undefined : `${problem}; ${retryHint}`;
};

/** Longhorn compares as it reads; this makes sure that it did. */
const checksumFault = ({ checksum }: Image, { status }: BackingImage): string | undefined => {
  const found = status?.checksum?.toLowerCase();
  const isKnown = checksum?.algorithm === 'sha512' && found !== undefined && found !== '';
  return isKnown && found !== checksum.hex ? `sha512 of the file is ${found}, expected ${checksum.hex}` : undefined;
};

// Taking away what an image made of Longhorn: all of it at deletion, what is not worth keeping when the user starts it over. Pure.

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

interface Restart {
  readonly plan: Plan;
  /** The image as new, once nothing is in the way any more. */
  readonly cleared?: Image;
}

/**
 * A retry throws a backing image away unless its bytes are good: those are never fetched twice. Nor is one thrown away that was made for this very
 * retry by a pass whose status was lost.
 */
const planRestart = (image: Image, observed: ObservedBackingImage, context: PlanContext): Restart => {
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
