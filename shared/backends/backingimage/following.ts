// A backing image that is on its way, told as the state of its image. Pure.
import { type BackingImage, backingImages } from '#shared/api/foreign/longhorn.ts';
import { removeWhole } from '#shared/backends/actions.ts';
import type { Plan, PlanContext } from '#shared/backends/backend.ts';
import type { Copies } from '#shared/backends/backingimage/copies.ts';
import { attemptOf } from '#shared/backends/backingimage/manifests.ts';
import type { Image, ImageState } from '#shared/backends/image.ts';
import { countAttempts, describeAttempt, failedState, isPast, isoTime, waitingState } from '#shared/backends/state.ts';
import { isSent, movingOf } from '#shared/populate/source.ts';

type Running = Extract<Copies, { is: 'running' }>;

export const planRunning = (image: Image, observed: BackingImage, copies: Running, context: PlanContext): Plan => {
  const attempt = attemptOf(observed);
  const counted = countAttempts(image.state, { is: 'waiting', attempts: attempt, failures: attempt - 1 });
  const isSameAttempt = image.state.attempts >= attempt;
  const progress = isSameAttempt ? Math.max(counted.progress, copies.percent) : copies.percent;
  const state = stateOf(image, { ...counted, progress, nextAttemptTime: undefined }, { observed, copies }, context);
  // What has failed here must not come to life after all.
  return { actions: state.phase === 'Failed' ? removeWhole(backingImages, observed) : [], state };
};

interface Followed {
  readonly observed: BackingImage;
  readonly copies: Running;
}

const stateOf = (image: Image, state: ImageState, followed: Followed, context: PlanContext): ImageState => {
  const { copies, observed } = followed;
  switch (copies.step) {
    case 'moving':
      return movingState(image, state, observed, context);
    case 'handing-over':
      return verifyingState(image, { ...state, progress: 99 }, context);
    case 'unknown':
      return wait(
        image,
        state,
        ['CopiesUnknown', 'Longhorn cannot say how the copies are: a node may be away'],
        context,
      );
    case 'waiting':
      return isSent(image.source)
        ? uploadState(image, state, observed, context)
        : wait(image, state, ['Starting', startingWords(copies)], context);
  }
};

const startingWords = ({ message }: Running): string =>
  message === '' ? 'Longhorn is starting the transfer' : `Longhorn is starting the transfer: ${message}`;

const wait = (
  image: Image,
  state: ImageState,
  ...[[reason, message], context]: [readonly [string, string], PlanContext]
) => waitingState(image, state, { phase: 'Pending', reason, message: describeAttempt(image, state, message) }, context);

const verifyingState = (image: Image, state: ImageState, context: PlanContext): ImageState => {
  const message = describeAttempt(image, state, 'checking the file and handing it to its disk');
  return waitingState(image, state, { phase: 'Verifying', reason: 'Verifying', message }, context);
};

/** Seconds from the beginning of the attempt; a client may take as long as a transfer to begin sending. */
const deadlineOf = ({ metadata }: BackingImage, { now, settings }: PlanContext): string => {
  const begun = Date.parse(metadata.creationTimestamp ?? '') || now;
  return isoTime(begun + (settings.attemptSeconds + settings.childSeconds) * 1000);
};

const movingState = (image: Image, state: ImageState, observed: BackingImage, context: PlanContext): ImageState => {
  const deadline = deadlineOf(observed, context);
  if (isPast(deadline, context.now)) {
    return failedState(state, 'DeadlineExceeded', 'the transfer ran past its deadline and was stopped');
  }
  const { phase, doing } = movingOf(image.source);
  return { ...state, phase, reason: phase, message: describeAttempt(image, state, doing), deadline };
};

const uploadState = (image: Image, state: ImageState, observed: BackingImage, context: PlanContext): ImageState => {
  const deadline = deadlineOf(observed, context);
  if (isPast(deadline, context.now)) {
    return failedState(state, 'DeadlineExceeded', 'nobody sent the file in time');
  }
  return {
    ...state,
    phase: 'Pending',
    reason: 'WaitingForUpload',
    message: 'waiting for a client to send the file',
    deadline,
  };
};
