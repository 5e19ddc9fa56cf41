// The next actions for a Job, decided from the Job, its pods and the clock. Pure; executed by jobs.ts.
import type { Job, Pod } from '#shared/api/foreign/core.ts';
import type { Condition } from '#shared/api/object.ts';
import { isDisrupted, isFinished, timeText } from '#local-cluster/controllers/jobs/pod-status.ts';

export type JobStatus = NonNullable<Job['status']>;

export interface JobPlan {
  readonly deletePods: readonly Pod[];
  readonly createPod: boolean;
  readonly deleteJob: boolean;
  /** Written when it differs from the status of the Job. */
  readonly status: JobStatus;
  /** Milliseconds until the result changes by time alone. */
  readonly dueMs?: number | undefined;
}

export interface JobClock {
  /** Milliseconds since the epoch. */
  readonly now: number;
  /** Factor for the delays between attempts; 1 normally, smaller in tests. */
  readonly backOffFactor: number;
}

/** 10 s, doubled for each failure, 6 min at most. */
const backOffMs = { first: 10_000, most: 360_000 };

const conditionOf = (job: Job, type: string): Condition | undefined =>
  job.status?.conditions?.find((condition) => condition.type === type && condition.status === 'True');

export const planJob = (job: Job, pods: readonly Pod[], clock: JobClock): JobPlan => {
  const finished = conditionOf(job, 'Complete') ?? conditionOf(job, 'Failed');
  if (finished !== undefined) return planFinished(job, finished, clock);
  const seen = sortPods(job, pods);
  if (job.spec.suspend === true) return planSuspended(job, seen, clock);
  return planRunning(job, seen, clock);
};

const still = (job: Job): JobPlan => ({ deletePods: [], createPod: false, deleteJob: false, status: job.status ?? {} });

/** Scenario 1: finished. Nothing happens until its time to live has passed. */
const planFinished = (job: Job, finished: Condition, { now }: JobClock): JobPlan => {
  const ttl = job.spec.ttlSecondsAfterFinished;
  if (ttl === undefined) return still(job);
  const dueMs = Date.parse(finished.lastTransitionTime ?? '') + ttl * 1000 - now;
  return dueMs > 0 ? { ...still(job), dueMs } : { ...still(job), deleteJob: true };
};

interface PodsSeen {
  readonly active: readonly Pod[];
  /** Not being deleted yet. */
  readonly stoppable: readonly Pod[];
  readonly disrupted: readonly Pod[];
  readonly lastFailure: number;
  readonly succeeded: number;
  readonly failed: number;
}

const sortPods = (job: Job, pods: readonly Pod[]): PodsSeen => {
  const disrupted = pods.filter(isDisrupted);
  const counted = pods.filter((pod) => !isDisrupted(pod));
  const active = counted.filter((pod) => !isFinished(pod));
  // A pod with a deletion timestamp ended because of it.
  const failures = counted.filter(
    ({ status, metadata }) => status?.phase === 'Failed' && metadata.deletionTimestamp === undefined,
  );
  return {
    active,
    disrupted,
    stoppable: active.filter((pod) => pod.metadata.deletionTimestamp === undefined),
    succeeded: counted.filter((pod) => pod.status?.phase === 'Succeeded').length,
    // A failed pod counts even if it was deleted.
    failed: Math.max(failures.length, job.status?.failed ?? 0),
    lastFailure: Math.max(0, ...failures.map(endOf)),
  };
};

const endOf = (pod: Pod): number => {
  const ends = (pod.status?.containerStatuses ?? []).map(({ state }) =>
    Date.parse(state?.terminated?.finishedAt ?? ''),
  );
  return Math.max(0, ...ends.filter((end) => !Number.isNaN(end)));
};

/** Scenario 2: suspended. Pods are deleted, earlier failures stay counted, and the deadline restarts afterwards. */
const planSuspended = (job: Job, seen: PodsSeen, { now }: JobClock): JobPlan => {
  const { startTime: _, ...counts } = countsOf(job, seen);
  const suspended = condition('Suspended', { reason: 'JobSuspended', message: 'Job suspended' }, now);
  const conditions =
    conditionOf(job, 'Suspended') === undefined ? withCondition(job, suspended) : job.status?.conditions;
  return {
    ...still(job),
    deletePods: [...seen.stoppable, ...seen.disrupted],
    status: { ...counts, conditions: conditions ?? [] },
  };
};

/** Scenario 3: running. */
const planRunning = (job: Job, seen: PodsSeen, clock: JobClock): JobPlan => {
  const { now } = clock;
  const startTime = job.status?.startTime ?? timeText(new Date(now));
  const status: JobStatus = { ...countsOf(job, seen), startTime, conditions: resumed(job, now) };
  const plan: JobPlan = { ...still(job), deletePods: seen.disrupted, status };
  const deadline = job.spec.activeDeadlineSeconds;
  const left = deadline === undefined ? undefined : Date.parse(startTime) + deadline * 1000 - now;

  if (seen.succeeded > 0) return planEnd(plan, seen, { type: 'Complete', ...completeWords, now });
  const target = conditionOf(job, 'FailureTarget');
  const verdict = target === undefined ? verdictOf(job, seen, left) : wordsOf(target);
  if (verdict !== undefined) return planEnd(plan, seen, { type: 'Failed', ...verdict, now });
  if (seen.active.length > 0) return { ...plan, dueMs: left };

  const pause = Math.min(backOffMs.most, backOffMs.first * 2 ** (seen.failed - 1)) * clock.backOffFactor;
  const wait = seen.failed === 0 ? 0 : seen.lastFailure + pause - now;
  return wait > 0 ? { ...plan, dueMs: Math.min(wait, left ?? wait) } : { ...plan, createPod: true, dueMs: left };
};

interface Words {
  readonly reason: string;
  readonly message: string;
}

const completeWords: Words = { reason: 'CompletionsReached', message: 'Reached expected number of succeeded pods' };

const wordsOf = ({ reason = '', message = '' }: Condition): Words => ({ reason, message });

const verdictOf = (job: Job, seen: PodsSeen, left: number | undefined): Words | undefined => {
  if (seen.failed > (job.spec.backoffLimit ?? 6)) {
    return { reason: 'BackoffLimitExceeded', message: 'Job has reached the specified backoff limit' };
  }
  if (left === undefined || left > 0) return undefined;
  return { reason: 'DeadlineExceeded', message: 'Job was active longer than specified deadline' };
};

/** The condition with the result is written at once, the final one only when no pod is running any more. */
const planEnd = (
  plan: JobPlan,
  seen: PodsSeen,
  end: Words & { readonly type: 'Complete' | 'Failed'; readonly now: number },
): JobPlan => {
  const { type, now, ...words } = end;
  const announced = condition(type === 'Complete' ? 'SuccessCriteriaMet' : 'FailureTarget', words, now);
  const known = plan.status.conditions ?? [];
  const conditions = known.some((one) => one.type === announced.type) ? known : [...known, announced];
  if (seen.active.length > 0) return { ...plan, deletePods: seen.stoppable, status: { ...plan.status, conditions } };
  const completionTime = type === 'Complete' ? { completionTime: timeText(new Date(now)) } : {};
  return {
    ...plan,
    status: { ...plan.status, ...completionTime, conditions: [...conditions, condition(type, words, now)] },
  };
};

const countsOf = (job: Job, seen: PodsSeen): JobStatus => ({
  ...job.status,
  active: seen.active.length,
  ready: seen.active.filter((pod) => pod.status?.phase === 'Running').length,
  terminating: seen.active.length - seen.stoppable.length,
  succeeded: Math.max(seen.succeeded, job.status?.succeeded ?? 0),
  failed: seen.failed,
});

const condition = (type: string, { reason, message }: Words, now: number): Condition => {
  const time = timeText(new Date(now));
  return { type, status: 'True', reason, message, lastTransitionTime: time };
};

const withCondition = (job: Job, added: Condition): readonly Condition[] => [
  ...(job.status?.conditions ?? []).filter(({ type }) => type !== added.type),
  added,
];

const resumed = (job: Job, now: number): readonly Condition[] => {
  if (conditionOf(job, 'Suspended') === undefined) return job.status?.conditions ?? [];
  const words = { reason: 'JobResumed', message: 'Job resumed' };
  return withCondition(job, { ...condition('Suspended', words, now), status: 'False' });
};
