// Plans of the backingimage backend: create the backing image and its class, observe the copies, count attempts. Pure.
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
import { attemptOf, buildStorageClass, marksOf, parametersOf, secretProblem } from './manifests.ts';
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
  leavingState,
} from '#shared/populate/state.ts';
import type { Image } from '#shared/backends/backend.ts';
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
      : { actions: [], state: leavingState(image, backingImage, context) };
  }
  const plan = follow(known(image, backingImage), { ...observed, backingImage }, context);
  return { ...plan, actions: [...adoption(image, backingImage), ...plan.actions] };
};

/** Records existing children, even if an earlier pass did not. */
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
      // A usable image stays available while a node is down.
      return image.state.phase === 'Available' ? unchanged(image) : planRunning(image, backingImage, copies, context);
  }
};

/** The time of the next attempt stays valid even if the failed backing image was deleted by someone else. */
const planMissing = (image: Image, observed: ObservedBackingImage, context: PlanContext): Plan => {
  const { nextAttemptTime } = image.state;
  const isTooEarly = nextAttemptTime !== undefined && !isPast(nextAttemptTime, context.now);
  return isTooEarly ? unchanged(image) : planStart(image, observed, context);
};

const planLost = (image: Image): Plan => ({
  actions: [],
  state: lostState(image, `BackingImage ${image.state.children?.backingImage ?? ''}`, image.source),
});

/** A backing image that Harvester created lacks our labels and would not be watched. */
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
    const message = 'the copies are ready; waiting for Longhorn to report their sha512, to verify the checksum';
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

/** Sizes and digests of the backing image. Sizes are 0 until Longhorn knows them. */
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

/** The checksum cannot be verified yet. A usable image was verified before. */
const isUnproven = ({ checksum, state }: Image, { status }: BackingImage): boolean =>
  checksum?.algorithm === 'sha512' && !status?.checksum && state.phase !== 'Available';

/**
 * For a file whose server did not report its length, or that changed after its inspection. qemu rounds the disk in a raw file up to whole
 * sectors.
 */
const sizeFault = ({ state }: Image, { status = {} }: BackingImage): string | undefined => {
  const { size = 0, virtualSize = 0 } = status;
  const isRaw = size > 0 && roundToSector(size) === roundToSector(virtualSize);
  if (!isRaw || state.phase === 'Available') return undefined;
  const problem = halfSector(size);
  return problem === undefined ? undefined : `${problem}; ${retryHint}`;
};

/** Longhorn compares digests while reading; this verifies that it did. */
const checksumFault = ({ checksum }: Image, { status }: BackingImage): string | undefined => {
  const found = status?.checksum?.toLowerCase();
  const isKnown = checksum?.algorithm === 'sha512' && found !== undefined && found !== '';
  return isKnown && found !== checksum.hex ? `sha512 of the file is ${found}, expected ${checksum.hex}` : undefined;
};

// Removes the children of an image in Longhorn: all of them at deletion, the useless ones when its user restarts it. Pure.

/**
 * The backing image first: Longhorn rejects its deletion while a replica depends on it, and then the class must stay too, or its volumes could
 * not be expanded any more.
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
  terminatingState(state, 'InUse', `used by ${users.join(', ')}: delete these first`);

interface Restart {
  readonly plan: Plan;
  /** The reset image, if the restart can proceed. */
  readonly cleared?: Image;
}

/**
 * A retry deletes a backing image unless its bytes are verified: those are never fetched twice. It does not delete one that an earlier pass
 * created for the same retry but could not record.
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
