// Derives the state of a transfer from its Job and pods: the number of attempts, their results, and the reason of the current wait. Pure;
// called by backends.
import { type ContainerStatus, type Job, type Pod, disruptionTarget } from '#shared/api/foreign/core.ts';
import { labels } from '#shared/api/names.ts';
import { backoffSeconds } from '#shared/populate/job/transfer-job.ts';
import { redact } from '#shared/runtime/redact.ts';
import { type Inspection, type TransferReport, parseReport } from '#shared/transfer/report.ts';

export interface AttemptFault {
  /** CamelCase, stable: a transfer fault, or why the worker was terminated. */
  readonly reason: string;
  readonly message: string;
  /** RFC 3339. Default: Kubernetes recorded none. */
  readonly time?: string | undefined;
  /** What the attempt reported about the source before it failed. */
  readonly inspection?: Inspection | undefined;
}

/** Why a worker does not start. */
export interface Hindrance {
  readonly reason: string;
  readonly message: string;
}

interface AttemptCounts {
  /** Started attempts. */
  readonly attempts: number;
  readonly failures: number;
  /** The error of the latest failed attempt. */
  readonly lastFault?: AttemptFault | undefined;
}

export type TransferRun = AttemptCounts &
  (
    | { readonly is: 'waiting'; readonly hindrance?: Hindrance | undefined }
    | { readonly is: 'running'; readonly pod: string }
    /** `nextAttempt` is RFC 3339, an estimate of when Kubernetes starts the next pod. */
    | { readonly is: 'backing-off'; readonly nextAttempt: string }
    | { readonly is: 'succeeded'; readonly report: Extract<TransferReport, { outcome: 'succeeded' }> }
    /** Final: a permanent fault, or no attempt is left. */
    | { readonly is: 'failed'; readonly fault: AttemptFault }
  );

export type SucceededRun = Extract<TransferRun, { readonly is: 'succeeded' }>;

const isTrue = (job: Job, type: string): boolean =>
  job.status?.conditions?.some((condition) => condition.type === type && condition.status === 'True') ?? false;

export const isComplete = (job: Job): boolean => isTrue(job, 'Complete');
export const isFailed = (job: Job): boolean => isTrue(job, 'Failed');
export const isFinished = (job: Job): boolean => isComplete(job) || isFailed(job);

/** Waits for other transfers, and is complete but for its start. */
export const isQueued = ({ metadata, spec }: Job): boolean =>
  metadata.labels?.[labels.queue] === 'waiting' &&
  spec.suspend === true &&
  metadata.labels[labels.starting] === undefined;

const terminatedOf = (pod: Pod): NonNullable<ContainerStatus['state']>['terminated'] =>
  pod.status?.containerStatuses?.find((status) => status.name === 'transfer')?.state?.terminated;

const endOf = (pod: Pod): string => terminatedOf(pod)?.finishedAt ?? pod.metadata.creationTimestamp ?? '';

const byEnd = (a: Pod, b: Pod): number => endOf(a).localeCompare(endOf(b));

const podsOf = (job: Job, pods: readonly Pod[]): readonly Pod[] =>
  pods.filter((pod) => pod.metadata.ownerReferences?.some((reference) => reference.uid === job.metadata.uid) ?? false);

/** Why the cluster ended the pod, such as an eviction or a drained node; its worker then reports that it was cancelled. */
const disruptionOf = ({ metadata, status }: Pod): Hindrance | undefined => {
  const condition = status?.conditions?.find(({ type, status: is }) => type === disruptionTarget && is === 'True');
  if (condition === undefined) return undefined;
  const cause = status?.message ?? condition.message ?? condition.reason ?? 'no reason is given';
  return { reason: 'PodDisrupted', message: `the cluster ended transfer pod ${metadata.name}: ${redact(cause)}` };
};

/** The error of an attempt with a failed report or none. */
const faultOf = (pod: Pod): AttemptFault => {
  const terminated = terminatedOf(pod);
  const report = parseReport(terminated?.message);
  // A worker that was cancelled does not know why: the pod may.
  const isExplained =
    report?.outcome === 'failed' && (report.reason !== 'Cancelled' || pod.status?.reason === undefined);
  const fault = disruptionOf(pod) ?? (isExplained ? report : silentFaultOf(pod));
  return {
    reason: fault.reason,
    // The worker redacts its messages; the container runtime does not.
    message: redact(fault.message),
    time: terminated?.finishedAt,
    inspection: report?.inspection,
  };
};

const silentFaultOf = (pod: Pod): Hindrance => {
  const terminated = terminatedOf(pod);
  if (terminated?.reason === 'OOMKilled') {
    return { reason: 'WorkerOutOfMemory', message: 'the transfer exceeded its memory limit' };
  }
  if (pod.status?.reason !== undefined) {
    return { reason: `Worker${pod.status.reason}`, message: pod.status.message ?? 'the transfer pod was terminated' };
  }
  if (terminated?.exitCode === 0) {
    return { reason: 'ReportMissing', message: 'the transfer ended without a report' };
  }
  const code = terminated === undefined ? 'unknown' : String(terminated.exitCode);
  return { reason: 'WorkerKilled', message: `the transfer was killed before it could report (exit code ${code})` };
};

const unplaced = (pod: Pod, what: string): Hindrance | undefined => {
  const found = pod.status?.conditions?.find(({ type, status }) => type === 'PodScheduled' && status === 'False');
  if (found === undefined) return undefined;
  const message = found.message ?? `the ${what} cannot be scheduled on any node`;
  return { reason: found.reason ?? 'Unschedulable', message: `${what} cannot be placed: ${message}` };
};

/** Why a pod does not start; `undefined` while it is only new. */
export const hindranceOf = (pod: Pod, what = 'transfer pod'): Hindrance | undefined => {
  const nowhere = unplaced(pod, what);
  if (nowhere !== undefined) return nowhere;
  const states = pod.status?.containerStatuses?.map((status) => status.state?.waiting) ?? [];
  const waiting = states.find((state) => state?.reason !== undefined && state.reason !== 'ContainerCreating');
  if (waiting?.reason === undefined) return undefined;
  const detail = waiting.message === undefined ? '' : `: ${waiting.message}`;
  return { reason: waiting.reason, message: `${what} ${pod.metadata.name} cannot start${detail}` };
};

/** The failure as recorded on the Job, for when none of its pods is left. */
const jobFaultOf = (job: Job): AttemptFault => {
  const condition = job.status?.conditions?.find((candidate) => candidate.type === 'Failed');
  const reason = condition?.reason === 'DeadlineExceeded' ? 'DeadlineExceeded' : 'TransferFailed';
  const message = condition?.message ?? 'the transfer Job failed and its pods are gone';
  return { reason, message, time: condition?.lastTransitionTime };
};

const lastSucceeded = (pods: readonly Pod[]): Pod | undefined =>
  pods
    .filter((pod) => pod.status?.phase === 'Succeeded')
    .sort(byEnd)
    .at(-1);

/** `undefined` unless a pod has succeeded and reported it. */
const succeededRun = (pods: readonly Pod[], failures: number): SucceededRun | undefined => {
  const succeeded = lastSucceeded(pods);
  const report = succeeded && parseReport(terminatedOf(succeeded)?.message);
  return report?.outcome === 'succeeded' ? { is: 'succeeded', attempts: failures + 1, failures, report } : undefined;
};

const finishedRun = (job: Job, pods: readonly Pod[], failures: number): TransferRun => {
  const last = [...pods].sort(byEnd).at(-1);
  if (isFailed(job)) {
    const deadline = jobFaultOf(job);
    const fault = last === undefined || deadline.reason === 'DeadlineExceeded' ? deadline : faultOf(last);
    return { is: 'failed', attempts: Math.max(failures, 1), failures, fault, lastFault: fault };
  }
  const run = succeededRun(pods, failures);
  if (run !== undefined) return run;
  const succeeded = lastSucceeded(pods);
  const fault =
    succeeded === undefined
      ? { reason: 'ReportMissing', message: 'the transfer ended, but the pod with its report is gone' }
      : faultOf(succeeded);
  return { is: 'failed', attempts: failures + 1, failures: failures + 1, fault, lastFault: fault };
};

/**
 * The success that the pods of a Job with that name report, without reading the Job; `undefined`: read the Job. The pods are matched by name,
 * so use it for reports that may be handled twice, not for volumes, which are created again under the same names.
 */
export const readSucceeded = (jobName: string, allPods: readonly Pod[]): SucceededRun | undefined => {
  const pods = allPods.filter(({ metadata }) =>
    metadata.ownerReferences?.some(({ kind, name }) => kind === 'Job' && name === jobName),
  );
  const failures = pods.filter((pod) => pod.status?.phase === 'Failed' && disruptionOf(pod) === undefined).length;
  return succeededRun(pods, failures);
};

export const isOver = (pod: Pod): boolean => pod.status?.phase === 'Failed' || pod.status?.phase === 'Succeeded';

/** Whether every attempt of a finished export Job reports that it has begun nothing at the destination. */
export const hasSentNothing = (job: Job, allPods: readonly Pod[]): boolean => {
  const ended = podsOf(job, allPods).filter(isOver);
  const reports = ended.map((pod) => parseReport(terminatedOf(pod)?.message));
  return (
    ended.length >= Math.max(1, job.status?.failed ?? 0) &&
    reports.every((report) => report?.outcome === 'failed' && report.sentNothing === true)
  );
};

const newestFirst = (a: Pod, b: Pod): number =>
  (b.metadata.creationTimestamp ?? '').localeCompare(a.metadata.creationTimestamp ?? '');

/**
 * Reads a Job and its pods. Of a finished Job the pods must have been listed after it was read: an older list may lack the report. `now` is
 * milliseconds since the epoch.
 */
export const readTransfer = (job: Job, allPods: readonly Pod[], now: number): TransferRun => {
  const pods = podsOf(job, allPods);
  const ended = pods.filter(isOver).sort(byEnd);
  const disrupted = ended.filter((pod) => pod.status?.phase === 'Failed' && disruptionOf(pod) !== undefined);
  const failed = ended.filter((pod) => pod.status?.phase === 'Failed' && !disrupted.includes(pod));
  // Kubernetes counts a failure once its pod is gone from the node; the pods may be ahead of the count, or already collected.
  const failures = Math.max(job.status?.failed ?? 0, failed.length);
  // A succeeded pod ends its Job, even before the Job status reports it.
  if (isFinished(job) || ended.length > failed.length + disrupted.length) return finishedRun(job, ended, failures);
  const lastFailed = failed.at(-1);
  const counts = { failures, lastFault: lastFailed === undefined ? undefined : faultOf(lastFailed) };
  const [live] = pods.filter((pod) => !isOver(pod)).sort(newestFirst);
  if (live !== undefined) return liveRun(live, counts);
  const lastDisrupted = disrupted.at(-1);
  if (lastDisrupted !== undefined && lastDisrupted === ended.at(-1))
    return { is: 'waiting', ...counts, attempts: failures + 1, hindrance: disruptionOf(lastDisrupted) };
  const next = lastFailed === undefined ? 0 : Date.parse(endOf(lastFailed)) + backoffSeconds(failures) * 1000;
  if (next <= now) return { is: 'waiting', ...counts, attempts: failures };
  return { is: 'backing-off', ...counts, attempts: failures, nextAttempt: new Date(next).toISOString() };
};

const liveRun = (pod: Pod, counts: Omit<AttemptCounts, 'attempts'>): TransferRun => {
  const attempts = counts.failures + 1;
  if (pod.status?.phase !== 'Running') return { is: 'waiting', ...counts, attempts, hindrance: hindranceOf(pod) };
  return { is: 'running', ...counts, attempts, pod: pod.metadata.name };
};
