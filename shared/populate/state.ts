// State transitions common to all backends: attempts are counted and waits have deadlines.
import { deletedOwner, labels } from '#shared/api/names.ts';
import type { KubeObject } from '#shared/api/object.ts';
import {
  type Filled,
  type ImagePhase,
  type ImageState,
  type TransferState,
  initialState,
} from '#shared/populate/filled.ts';
import type { TransferRun } from '#shared/populate/job/attempts.ts';
import { receiving } from '#shared/populate/sources/row.ts';
import type { TransferPhase } from '#shared/transfer/report.ts';
import type { Plan, PlanContext } from '#shared/populate/actions.ts';

export interface Step {
  readonly phase: ImagePhase;
  readonly reason: string;
  readonly message: string;
}

export const noClassReason = 'StorageClassNotFound';

/** An administrator may still create the class, or mark it as default. `what` is the object to create again. */
export const noClassStep = (className: string | undefined, what: string): Step => ({
  phase: 'Pending',
  reason: noClassReason,
  message:
    className === undefined
      ? 'no storage class is named and the cluster has no default one: name one in spec, or mark one as default'
      : `storage class "${className}" does not exist: create it, or create ${what} again with another`,
});

export const isoTime = (milliseconds: number): string => new Date(milliseconds).toISOString().replace(/\.\d{3}Z$/, 'Z');

export const unchanged = (image: Filled): Plan => ({ actions: [], state: image.state });

/** Final until the user acts. */
export const failedState = (state: ImageState, reason: string, message: string): ImageState => ({
  ...state,
  phase: 'Failed',
  reason,
  message,
  // The content of a failed transfer is discarded.
  progress: 0,
  deadline: undefined,
  nextAttemptTime: undefined,
  transfer: undefined,
});

/**
 * Waits with a deadline. The deadline is set when the wait starts and stays the same when the reason changes, so that alternating reasons
 * cannot postpone it forever. After it the image fails with the reason it was stuck for. `next` is the state so far.
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
  /** The object that the storage creates. Default: it does not exist yet. */
  readonly child?: KubeObject | undefined;
  readonly isComplaining: boolean;
}

/**
 * Waits for storage that copies by itself: it reports nothing until it is done, and may take as long as an attempt that transfers the same
 * bytes. After a warning event the timeout is that of any other child.
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
  const previous = parseTime(isSame ? before.deadline : undefined);
  const begun = parseTime(child?.metadata.creationTimestamp) ?? now;
  const last = begun + (settings.attemptSeconds + settings.childSeconds) * 1000;
  const least = isComplaining ? Math.min(last, previous ?? now + settings.childSeconds * 1000) : last;
  const deadline = isoTime(child === undefined ? (previous ?? least) : least);
  return isPast(deadline, now)
    ? failedState(next, step.reason, `gave up waiting: ${step.message}; ${retryHint}`)
    : { ...next, ...step, deadline, nextAttemptTime: undefined };
};

export const retryHint = 'fix this, then retry with a new value of the annotation bullion.dev/retry';

/** Waits for an action outside of Bullion, without a deadline. */
export const restingState = (
  { state }: Filled,
  { reason, message }: { readonly reason: string; readonly message: string },
): ImageState => ({ ...state, phase: 'Pending', reason, message, deadline: undefined, nextAttemptTime: undefined });

/** A name that Bullion needs is taken by another object. */
export const takenState = (image: Filled, { kind, metadata }: KubeObject, context: PlanContext): ImageState => {
  const isKept = metadata.labels?.[labels.ownerUid] === deletedOwner;
  const message = isKept
    ? `${kind} ${metadata.name} is kept, so that a deleted image of this name can be brought back: delete ${kind} ${metadata.name} to give that up, or delete this object and run bullion undelete`
    : `${kind} ${metadata.name} exists and belongs to something else: delete it or rename this object`;
  return waitingState(image, image.state, { phase: 'Pending', reason: 'NameTaken', message }, context);
};

/** A child is being deleted, which what comes next would have the name of. */
export const leavingState = (image: Filled, { kind, metadata }: KubeObject, context: PlanContext): ImageState => {
  const message = `${kind} ${metadata.name} is being deleted; starting again once it is gone`;
  return waitingState(image, image.state, { phase: 'Pending', reason: 'ChildDeleted', message }, context);
};

/** Final until there is a change; the object is ready for use. */
export const usableState = (image: Filled, state: ImageState, what: 'image' | 'volume' = 'image'): ImageState => ({
  ...state,
  phase: 'Available',
  reason: 'Ready',
  message: `the ${what} is ready to use`,
  progress: 100,
  deadline: undefined,
  nextAttemptTime: undefined,
  transfer: undefined,
  // A usable image is never restarted, so a late retry counts as handled.
  handledRetryToken: image.retryToken ?? state.handledRetryToken,
});

/** Being deleted, and what the deletion waits for. */
export const terminatingState = (state: ImageState, reason: string, message: string): ImageState => ({
  ...state,
  phase: 'Terminating',
  reason,
  message,
  deadline: undefined,
  nextAttemptTime: undefined,
});

/**
 * Waits until the children of the last try are gone, each for as long as it has been terminating: one that is only now deleted gets the whole
 * timeout. Pods go with their Jobs. A retry that is given up counts as handled.
 */
export const restartingState = (image: Filled, left: readonly KubeObject[], context: PlanContext): ImageState => {
  const message = `removing children of the last attempt: ${left.map(describeChild).join(', ')}`;
  const begun = left.flatMap(({ metadata }) => parseTime(metadata.deletionTimestamp) ?? []);
  const deadline =
    begun.length > 0 ? isoTime(Math.min(...begun) + context.settings.childSeconds * 1000) : image.state.deadline;
  const isAsked = begun.length === 0 && left.some(({ kind }) => kind !== 'Pod');
  const waited = { ...image, state: { ...image.state, deadline: isAsked ? undefined : deadline } };
  const state = waitingState(waited, image.state, { phase: 'Pending', reason: 'Restarting', message }, context);
  return state.phase === 'Failed' ? { ...state, handledRetryToken: image.retryToken } : state;
};

/** Restarted: the initial state, except for the counters over its lifetime. */
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

/** A child and the finalizers that keep it, for messages. */
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

/** Progress of an attempt that is counted now: only of its own pod, if that has reported already. */
const progressOfNext = ({ transfer }: ImageState, run: TransferRun): number =>
  run.is === 'running' && transfer?.run === run.pod ? progressOf(transfer) : 0;

/** Takes over the number of attempts of a transfer. Progress is reset when that number changes, and only then. */
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
  Inspecting: 'inspecting the source',
  Downloading: 'downloading',
  Converting: 'converting to raw',
  Verifying: 'verifying',
} as const satisfies Record<TransferPhase, string>;

/** Whether a report comes from an inspection Job. Pods are named after their Job. */
export const isInspection = ({ run }: Pick<TransferState, 'run'>): boolean => run.startsWith('inspect-');

/** Progress of the filling according to a report: an inspection does not count. */
export const progressOf = (transfer: Pick<TransferState, 'run' | 'phase' | 'percent'>): number =>
  transfer.phase === 'Inspecting' || isInspection(transfer) ? 0 : Math.floor(transfer.percent);

const isExport = ({ run }: Pick<TransferState, 'run'>): boolean => run.startsWith('export-');

/**
 * An inspection that must read the source to its end is not a download, which starts afterwards at 0 %. An import also inspects its source;
 * there it is reported as part of the download, because the phase must not go back.
 */
const stepOf = (transfer: TransferState): { phase: ImagePhase; reason: string; say: string } => {
  if (isInspection(transfer) && transfer.phase !== 'Inspecting') {
    const say = `reading all of the source to find its size: ${Math.floor(transfer.percent)} % done`;
    return { phase: 'Pending', reason: 'Inspecting', say };
  }
  if (isExport(transfer)) {
    const say = transfer.phase === 'Verifying' ? 'completing the export' : 'exporting';
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

/** A running transfer according to its latest report. */
export const reportedState = (image: Filled, state: ImageState, transfer: TransferState): ImageState => {
  const { phase, reason, say: usual } = stepOf(transfer);
  const say = image.isUpload === true && phase === 'Downloading' ? receiving.doing : usual;
  // Until the head of an upload is there, nothing is received: its note says what is awaited.
  const isAwaited = image.isUpload === true && transfer.phase === 'Inspecting';
  const doing = transfer.note === undefined ? say : isAwaited ? transfer.note : `${say} (${transfer.note})`;
  return {
    ...state,
    phase,
    reason,
    message: describeAttempt(image, state, doing),
    transfer,
  };
};
