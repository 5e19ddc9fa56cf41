// The state of an image while its backing image is being filled. Pure.
import { type BackingImage, backingImages } from '#shared/api/foreign/longhorn.ts';
import { removeWhole, type Plan, type PlanContext } from '#shared/populate/actions.ts';
import type { Copies } from '#shared/backends/backingimage/copies.ts';
import { attemptOf } from '#shared/backends/backingimage/manifests.ts';
import type { ImageState } from '#shared/populate/filled.ts';
import { countAttempts, describeAttempt, failedState, isPast, isoTime, waitingState } from '#shared/populate/state.ts';
import { isSent, movingOf } from '#shared/populate/source.ts';
import { describeFailure } from '#shared/populate/job/following.ts';
import { backoffSeconds } from '#shared/populate/job/transfer-job.ts';
import { redact } from '#shared/runtime/redact.ts';
import type { Image } from '#shared/backends/backend.ts';

type Running = Extract<Copies, { is: 'running' }>;

export const planRunning = (image: Image, observed: BackingImage, copies: Running, context: PlanContext): Plan => {
  const attempt = attemptOf(observed);
  const counted = countAttempts(image.state, { is: 'waiting', attempts: attempt, failures: attempt - 1 });
  const isSameAttempt = image.state.attempts >= attempt;
  const progress = isSameAttempt ? Math.max(counted.progress, copies.percent) : copies.percent;
  const state = stateOf(image, { ...counted, progress, nextAttemptTime: undefined }, { observed, copies }, context);
  // A failed backing image must not become usable later.
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
        ['CopiesUnknown', 'Longhorn does not know the state of the copies: a node may be down'],
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

const wait = (image: Image, state: ImageState, [reason, message]: readonly [string, string], context: PlanContext) =>
  waitingState(image, state, { phase: 'Pending', reason, message: describeAttempt(image, state, message) }, context);

const verifyingState = (image: Image, state: ImageState, context: PlanContext): ImageState => {
  const message = describeAttempt(image, state, 'verifying the file and moving it to its disk');
  return waitingState(image, state, { phase: 'Verifying', reason: 'Verifying', message }, context);
};

/** Measured from the start of the attempt; a client may take as long as a transfer to start sending. */
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
    return failedState(state, 'DeadlineExceeded', 'no file was sent in time');
  }
  return {
    ...state,
    phase: 'Pending',
    reason: 'WaitingForUpload',
    message: 'waiting for a client to send the file',
    deadline,
  };
};

// A backing image without a usable copy: counts the attempt, waits, deletes it, and stops at the limit. Pure.

type Failure = Extract<Copies, { is: 'failed' }>;

interface Fault {
  readonly reason: string;
  readonly message: string;
  /** A retry would fail the same way. */
  readonly isFinal: boolean;
}

/** Longhorn reports causes only as text. An unknown cause may be the network, and is retried. */
const causes: readonly (readonly [RegExp, string, boolean])[] = [
  [/checksum.*(mismatch|match|expected)/i, 'ChecksumMismatch', true],
  [/\b404\b/, 'SourceNotFound', true],
  [/\b40[13]\b/, 'SourceForbidden', true],
  [/multiple of 512/i, 'UnsupportedFormat', true],
];

const faultOf = ({ message }: Pick<Failure, 'message'>): Fault => {
  // A number in a URL is not a status.
  const text = message.replaceAll(/\bhttps?:\/\/\S+/g, '');
  const cause = causes.find(([form]) => form.test(text));
  return { reason: cause?.[1] ?? 'TransferFailed', message: redact(message), isFinal: cause?.[2] ?? false };
};

/**
 * The failure is recorded before the backing image is deleted: a crash between the two must not lose the count. The record includes the number
 * of the attempt, so a failure that is observed repeatedly is counted once.
 */
export const planFailed = (image: Image, observed: BackingImage, failure: Failure, context: PlanContext): Plan => {
  const attempt = attemptOf(observed);
  const fault = faultOf(failure);
  const state = countFailure(image, attempt, { ...fault, time: failure.time }, context);
  if (fault.isFinal || attempt > image.retries) {
    return { actions: [], state: failedState(state, fault.reason, describeFailure(image, state, fault.message)) };
  }
  const next = Date.parse(state.lastFailureTime ?? '') + backoffSeconds(attempt) * 1000;
  const isCounted = image.state.attemptsFailed >= attempt;
  return isCounted && isPast(isoTime(next), context.now)
    ? planAgain(image, state, observed, context)
    : { actions: [], state: backingOff(image, state, isoTime(next)) };
};

const countFailure = (
  image: Image,
  attempt: number,
  { reason, message, time }: Fault & { readonly time?: string | undefined },
  { now }: PlanContext,
): ImageState => {
  const isKnown = image.state.attemptsFailed >= attempt;
  const since = isKnown ? image.state.lastFailureTime : isoTime(Date.parse(time ?? '') || now);
  const lastFault = { reason, message, time: since };
  return countAttempts(image.state, { is: 'waiting', attempts: attempt, failures: attempt, lastFault });
};

/** The tick reconciles it when the time has come. */
const backingOff = (image: Image, state: ImageState, nextAttemptTime: string): ImageState => ({
  ...state,
  phase: 'Pending',
  reason: state.lastFailure?.reason ?? 'TransferFailed',
  message: `attempt ${state.attempts} of ${image.retries + 1} failed: ${state.lastFailure?.message}; the next starts after ${nextAttemptTime}`,
  nextAttemptTime,
  progress: 0,
  deadline: undefined,
  transfer: undefined,
});

const planAgain = (image: Image, state: ImageState, observed: BackingImage, context: PlanContext): Plan => {
  const message = `attempt ${state.attempts} of ${image.retries + 1} failed: ${state.lastFailure?.message}; removing its backing image`;
  const step = { phase: 'Pending', reason: state.lastFailure?.reason ?? 'TransferFailed', message } as const;
  return { actions: removeWhole(backingImages, observed), state: waitingState(image, state, step, context) };
};
