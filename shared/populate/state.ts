// The moves between states that every backend makes, so that all keep the same promises: counts add up, waits have deadlines.
import type { KubeObject } from '#shared/api/object.ts';
import {
  type Filled,
  type ImagePhase,
  type ImageState,
  type TransferState,
  initialState,
} from '#shared/populate/filled.ts';
import type { TransferRun } from '#shared/populate/job/attempts.ts';
import type { TransferPhase } from '#shared/transfer/progress.ts';
import type { Plan, PlanContext } from '#shared/populate/actions.ts';

export interface Step {
  readonly phase: ImagePhase;
  readonly reason: string;
  readonly message: string;
}

/** A class that an administrator may still make, or mark as default. `what` is to be made anew. */
export const noClassStep = (className: string | undefined, what: string): Step => ({
  phase: 'Pending',
  reason: 'StorageClassNotFound',
  message:
    className === undefined
      ? 'no storage class is named and the cluster has no default one: name one in spec, or mark one as default'
      : `storage class "${className}" does not exist: create it, or create ${what} again with another`,
});

export const isoTime = (milliseconds: number): string => new Date(milliseconds).toISOString().replace(/\.\d{3}Z$/, 'Z');

export const unchanged = (image: Filled): Plan => ({ actions: [], state: image.state });

/** Nothing more happens until the user does something. */
export const failedState = (state: ImageState, reason: string, message: string): ImageState => ({
  ...state,
  phase: 'Failed',
  reason,
  message,
  // Nothing is kept of what failed.
  progress: 0,
  deadline: undefined,
  nextAttemptTime: undefined,
  transfer: undefined,
});

/**
 * Waiting for something that has a deadline. The deadline is set when the wait begins and stays, whatever the reason of the moment, so that
 * reasons that take turns do not put it off for ever. Past it the image fails with the reason it was stuck for. `next` is the state so far.
 */
export const waitingState = (image: Filled, next: ImageState, step: Step, context: PlanContext): ImageState => {
  const deadline = isSameWait(image.state, next, step)
    ? image.state.deadline
    : isoTime(context.now + context.settings.childSeconds * 1000);
  if (isPast(deadline, context.now)) {
    return failedState(next, step.reason, `gave up waiting: ${step.message}; ${retryHint}`);
  }
  return { ...next, ...step, deadline, nextAttemptTime: undefined };
};

/** Milliseconds since the epoch. */
const parseTime = (time: string | undefined): number | undefined => {
  const parsed = Date.parse(time ?? '');
  return Number.isNaN(parsed) ? undefined : parsed;
};

interface StorageWait extends Step {
  /** What the storage makes; left out while it is not there. */
  readonly child?: KubeObject | undefined;
  readonly isComplaining: boolean;
}

/**
 * Waiting for storage that copies by itself: it says nothing until it is done, and may take as long as an attempt that moves the same bytes. Once
 * it complains, it has as long as any other child.
 */
export const storageWaitingState = (
  image: Filled,
  next: ImageState,
  { child, isComplaining, ...step }: StorageWait,
  context: PlanContext,
): ImageState => {
  const { now, settings } = context;
  const before = image.state;
  const isSame = before.phase === step.phase && before.reason === step.reason;
  const told = parseTime(isSame ? before.deadline : undefined);
  const begun = parseTime(child?.metadata.creationTimestamp) ?? now;
  const last = begun + (settings.attemptSeconds + settings.childSeconds) * 1000;
  const least = isComplaining ? Math.min(last, told ?? now + settings.childSeconds * 1000) : last;
  const deadline = isoTime(child === undefined ? (told ?? least) : least);
  return isPast(deadline, now)
    ? failedState(next, step.reason, `gave up waiting: ${step.message}; ${retryHint}`)
    : { ...next, ...step, deadline, nextAttemptTime: undefined };
};

export const retryHint = 'once that is put right, start again with a new value of the annotation bullion.dev/retry';

/** Waits for what is others' to do, for as long as it takes. */
export const restingState = (
  { state }: Filled,
  { reason, message }: { readonly reason: string; readonly message: string },
): ImageState => ({ ...state, phase: 'Pending', reason, message, deadline: undefined, nextAttemptTime: undefined });

/** A name of ours that somebody else holds. */
export const takenState = (image: Filled, { kind, metadata }: KubeObject, context: PlanContext): ImageState => {
  const message = `${kind} ${metadata.name} exists and belongs to something else: delete it or rename this object`;
  return waitingState(image, image.state, { phase: 'Pending', reason: 'NameTaken', message }, context);
};

/** Nothing more happens until somebody changes something, and anybody may use it. */
export const usableState = (image: Filled, state: ImageState, what: 'image' | 'volume' = 'image'): ImageState => ({
  ...state,
  phase: 'Available',
  reason: 'Ready',
  message: `the ${what} is ready to use`,
  progress: 100,
  deadline: undefined,
  nextAttemptTime: undefined,
  transfer: undefined,
  // A usable image is never started over, so a retry that came late is answered by it.
  handledRetryToken: image.retryToken ?? state.handledRetryToken,
});

/** On its way out, and what it waits for. */
export const terminatingState = (state: ImageState, reason: string, message: string): ImageState => ({
  ...state,
  phase: 'Terminating',
  reason,
  message,
  deadline: undefined,
  nextAttemptTime: undefined,
});

/**
 * Waits until what the last try left is gone, each child for as long as it has been on its way out: one that is only now asked to go has all of its
 * time. Pods go with their Jobs. A retry that is given up counts as acted on.
 */
export const restartingState = (image: Filled, left: readonly KubeObject[], context: PlanContext): ImageState => {
  const message = `removing what the last try left: ${left.map(describeChild).join(', ')}`;
  const begun = left.flatMap(({ metadata }) => parseTime(metadata.deletionTimestamp) ?? []);
  const deadline =
    begun.length > 0 ? isoTime(Math.min(...begun) + context.settings.childSeconds * 1000) : image.state.deadline;
  const isAsked = begun.length === 0 && left.some(({ kind }) => kind !== 'Pod');
  const waited = { ...image, state: { ...image.state, deadline: isAsked ? undefined : deadline } };
  const state = waitingState(waited, image.state, { phase: 'Pending', reason: 'Restarting', message }, context);
  return state.phase === 'Failed' ? { ...state, handledRetryToken: image.retryToken } : state;
};

/** Started over: as new, but for what is counted over its life. */
export const restartedState = ({
  state: { failures, lastFailureTime, lostDigests },
  retryToken,
}: Filled): ImageState => ({
  ...initialState,
  failures,
  lastFailureTime,
  lostDigests,
  handledRetryToken: retryToken,
});

/** A child and who holds it, for messages. */
export const describeChild = ({ kind, metadata }: KubeObject): string => {
  const holders = metadata.finalizers?.filter((finalizer) => finalizer !== 'foregroundDeletion') ?? [];
  return `${kind} ${metadata.name}${holders.length === 0 ? '' : ` (held by ${holders.join(', ')})`}`;
};

const isSameWait = (before: ImageState, next: ImageState, step: Step): boolean =>
  before.deadline !== undefined &&
  before.phase === step.phase &&
  before.attempts === next.attempts &&
  before.children?.job === next.children?.job;

export const isPast = (time: string | undefined, now: number): boolean => time !== undefined && Date.parse(time) <= now;

/** Progress of an attempt that was not counted until now: of its own pod alone, where that has reported already. */
const progressOfNext = ({ transfer }: ImageState, run: TransferRun): number =>
  run.is === 'running' && transfer?.run === run.pod ? progressOf(transfer) : 0;

/** Takes over what a transfer tells of its attempts. Progress starts over with the number of the attempt, and only then. */
export const countAttempts = (state: ImageState, run: TransferRun): ImageState => {
  const newFailures = Math.max(0, run.failures - state.attemptsFailed);
  const counted = {
    ...state,
    attempts: Math.max(state.attempts, run.attempts),
    progress: run.attempts > state.attempts ? progressOfNext(state, run) : state.progress,
    attemptsFailed: Math.max(state.attemptsFailed, run.failures),
    failures: state.failures + newFailures,
  };
  if (run.lastFault === undefined) return counted;
  const { reason, message, time, inspection } = run.lastFault;
  return {
    ...counted,
    lastFailure: { reason, message },
    lastFailureTime: time ?? state.lastFailureTime,
    inspection: state.inspection ?? inspection,
  };
};

const phaseOfTransfer = {
  Inspecting: 'Pending',
  Downloading: 'Downloading',
  Converting: 'Converting',
  Verifying: 'Verifying',
} as const satisfies Record<TransferPhase, ImagePhase>;

const transferMessages = {
  Inspecting: 'looking at the source',
  Downloading: 'downloading',
  Converting: 'converting to raw',
  Verifying: 'verifying',
} as const satisfies Record<TransferPhase, string>;

/** Whether a report is of a Job that only looks. Pods are named after their Job. */
export const isInspection = ({ run }: Pick<TransferState, 'run'>): boolean => run.startsWith('inspect-');

/** What a report is worth in the progress of what is filled: a look at the source is none of it. */
export const progressOf = (transfer: Pick<TransferState, 'run' | 'phase' | 'percent'>): number =>
  transfer.phase === 'Inspecting' || isInspection(transfer) ? 0 : Math.floor(transfer.percent);

const isExport = ({ run }: Pick<TransferState, 'run'>): boolean => run.startsWith('export-');

/**
 * A look at a source that must be read to its end is no download yet: that one begins anew, at 0 %. An import looks at its source as well:
 * told as part of the download, since that has been said to run and status does not go back.
 */
const stepOf = (transfer: TransferState): { phase: ImagePhase; reason: string; say: string } => {
  if (isInspection(transfer) && transfer.phase !== 'Inspecting') {
    const say = `reading all of the source to find its size: ${Math.floor(transfer.percent)} % done`;
    return { phase: 'Pending', reason: 'Inspecting', say };
  }
  if (isExport(transfer)) {
    const say = transfer.phase === 'Verifying' ? 'completing what was exported' : 'exporting';
    return { phase: 'Exporting', reason: 'Exporting', say };
  }
  const isLook = transfer.phase === 'Inspecting' && !isInspection(transfer);
  const phase = isLook ? 'Downloading' : transfer.phase;
  return { phase: phaseOfTransfer[phase], reason: phase, say: transferMessages[phase] };
};

/** `attempt 2 of 4: downloading; the attempt before failed: …` */
export const describeAttempt = (image: Filled, state: ImageState, doing: string): string => {
  const before = state.lastFailure === undefined ? '' : `; the attempt before failed: ${state.lastFailure.message}`;
  return `attempt ${state.attempts} of ${image.retries + 1}: ${doing}${before}`;
};

/** A running transfer as its newest report tells it. */
export const reportedState = (image: Filled, state: ImageState, transfer: TransferState): ImageState => {
  const { phase, reason, say } = stepOf(transfer);
  const doing = transfer.note === undefined ? say : `${say} (${transfer.note})`;
  return {
    ...state,
    phase,
    reason,
    message: describeAttempt(image, state, doing),
    transfer,
  };
};
