// The state of an object while its transfer has not succeeded. Called by plans of backends and of volumes.
import {
  type Job,
  type KubeEvent,
  type PersistentVolumeClaim,
  persistentVolumeClaims,
} from '#shared/api/foreign/core.ts';
import { remove, removeJob, type Plan, type PlanContext } from '#shared/populate/actions.ts';
import type { Filled, ImageState } from '#shared/populate/filled.ts';
import {
  countAttempts,
  describeAttempt,
  failedState,
  isPast,
  isoTime,
  reportedState,
  retryHint,
  waitingState,
} from '#shared/populate/state.ts';
import { type TransferRun, isQueued } from '#shared/populate/job/attempts.ts';
import { annotations, labels, systemNamespace, transferQueue } from '#shared/api/names.ts';
import { redact } from '#shared/runtime/redact.ts';

/** A transfer and the objects observed with it. */
interface Followed {
  readonly job: Job;
  readonly run: Exclude<TransferRun, { is: 'succeeded' }>;
  /** Warning events of the cluster, newest first. */
  readonly warnings?: readonly KubeEvent[] | undefined;
  /** Holds the uploaded file for the remaining attempts. */
  readonly spool?: PersistentVolumeClaim | undefined;
}

/** A stuck transfer is also stopped: it must not start after the image has failed. */
export const followTransfer = (image: Filled, followed: Followed, context: PlanContext): Plan => {
  const { job, run } = followed;
  // A Job that is still being started may never run: when it is created again, its deadline is set again. So it is when its turn has come.
  const isStarting = job.metadata.labels?.[labels.starting] !== undefined || isQueued(job);
  const children = isStarting ? image.state.children : { ...image.state.children, job: job.metadata.name };
  const counted = countAttempts({ ...image.state, children }, run);
  const state = stateOf(image, counted, followed, context);
  const isStuck = state.phase === 'Failed' && run.is !== 'failed';
  const isOver = state.phase === 'Failed';
  const actions = [
    // Its pods keep the spool in use, even after they have ended.
    ...(isStuck || (isOver && followed.spool !== undefined) ? removeJob(job) : []),
    ...(isOver ? remove(persistentVolumeClaims, followed.spool) : []),
  ];
  return { actions, state };
};

const stateOf = (image: Filled, state: ImageState, followed: Followed, context: PlanContext): ImageState => {
  const { job, run, warnings = [] } = followed;
  switch (run.is) {
    case 'failed':
      return failedState(state, run.fault.reason, describeFailure(image, state, run.fault.message));
    case 'running':
      return runningState(image, state, { job, run }, context);
    case 'backing-off':
      return backingOffState(image, state, run.nextAttempt, context);
    case 'waiting':
      if (isQueued(job)) return queuedState(state, job, context);
      return waitingState(image, state, { phase: 'Pending', ...hindranceOf(run, warnings) }, context);
  }
};

/** Remaining attempts are not made if they would fail the same way; the message says so, because users would wait for them. */
export const describeFailure = (image: Filled, state: ImageState, message: string): string => {
  const [attempt, allowed] = [Math.max(1, state.attempts), image.retries + 1];
  const end = attempt < allowed ? 'not retried' : 'the last';
  return `${message} (attempt ${attempt} of ${allowed}, ${end})`;
};

/** Long: others are served first, which is no fault. */
const mostQueuedMs = 24 * 3_600_000;

const queuedState = (state: ImageState, { metadata }: Job, { now }: PlanContext): ImageState => {
  const place = metadata.annotations?.[annotations.queuePlace];
  const where = `ConfigMap ${systemNamespace}/${transferQueue} limits how many run at once`;
  const message = `waiting for other transfers${place === undefined ? '' : `: ${place} in the queue`}; ${where}`;
  const deadline = isoTime(Date.parse(metadata.creationTimestamp ?? '') + mostQueuedMs);
  if (isPast(deadline, now)) return failedState(state, 'Queued', `gave up waiting: ${message}; ${retryHint}`);
  return { ...state, phase: 'Pending', reason: 'Queued', message, deadline, nextAttemptTime: undefined };
};

const hindranceOf = (
  run: Extract<TransferRun, { is: 'waiting' }>,
  [warning]: readonly KubeEvent[],
): { readonly reason: string; readonly message: string } => {
  if (run.hindrance !== undefined) return run.hindrance;
  if (warning === undefined) return { reason: 'Starting', message: 'the transfer is being started' };
  const { kind = '', name = '' } = warning.involvedObject;
  return { reason: warning.reason ?? 'Starting', message: `${kind} ${name}: ${redact(warning.message ?? '')}` };
};

const backingOffState = (image: Filled, state: ImageState, next: string, { settings }: PlanContext): ImageState => {
  const fault = state.lastFailure ?? { reason: 'TransferFailed', message: 'the transfer failed' };
  const nextAttemptTime = isoTime(Date.parse(next));
  return {
    ...state,
    phase: 'Pending',
    reason: fault.reason,
    message: `attempt ${state.attempts} of ${image.retries + 1} failed: ${fault.message}; the next starts at ${nextAttemptTime}`,
    nextAttemptTime,
    progress: 0,
    deadline: isoTime(Date.parse(next) + settings.childSeconds * 1000),
  };
};

/** The Job has its own deadline; this one is a little later, in case the Job's is not enforced. */
const deadlineOf = (job: Job, { now, settings }: PlanContext): string => {
  const begun = Date.parse(job.status?.startTime ?? job.metadata.creationTimestamp ?? '');
  const seconds = (job.spec.activeDeadlineSeconds ?? settings.attemptSeconds) + settings.childSeconds;
  return isoTime((Number.isNaN(begun) ? now : begun) + seconds * 1000);
};

const inspecting = { job: 'inspect-', phase: 'Pending', reason: 'Inspecting', doing: 'inspecting the source' } as const;

const downloading = { job: 'import-', phase: 'Downloading', reason: 'Downloading', doing: 'downloading' } as const;

/** The state of a Job with that prefix before its first report. */
const unreported = [
  inspecting,
  downloading,
  { job: 'export-', phase: 'Exporting', reason: 'Exporting', doing: 'exporting' },
] as const;

const runningState = (
  image: Filled,
  before: ImageState,
  { job, run }: { readonly job: Job; readonly run: Extract<TransferRun, { is: 'running' }> },
  context: PlanContext,
): ImageState => {
  const deadline = deadlineOf(job, context);
  const state = { ...before, deadline, nextAttemptTime: undefined };
  if (isPast(deadline, context.now)) {
    return failedState(state, 'DeadlineExceeded', 'the transfer ran past its deadline and was stopped');
  }
  if (state.transfer?.run === run.pod) return reportedState(image, state, state.transfer);
  const step = unreported.find(({ job: prefix }) => job.metadata.name.startsWith(prefix)) ?? inspecting;
  const doing = step === downloading && image.isUpload === true ? 'waiting for the upload' : step.doing;
  return {
    ...state,
    phase: step.phase,
    reason: step.reason,
    message: describeAttempt(image, state, doing),
    transfer: undefined,
  };
};
