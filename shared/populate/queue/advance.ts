// Admits transfers that wait, as far as the limits allow. Called where a transfer is created or has ended, and by the tick. Passes exclude each other by
// the Lease of the queue: a pass records there which Jobs it admits before it resumes them, so that no other pass admits more in their place, and one
// that was interrupted is completed by the next. Only what is recorded there counts as running: labels of Jobs are written by whoever may edit them.
import { z } from 'zod';
import { leases } from '#shared/api/foreign/kubernetes.ts';
import { type Job, jobs, priorityClasses } from '#shared/api/foreign/core.ts';
import { annotations, labels, systemNamespace, transferQueue } from '#shared/api/names.ts';
import { keyOf } from '#shared/api/object.ts';
import type { KubeClient } from '#shared/clients/kube/client.ts';
import { tolerate, isChangedMeanwhile, retryConflicts } from '#shared/clients/kube/tolerant.ts';
import { readLedger, writeLedger } from '#shared/populate/queue/ledger.ts';
import { isFinished, isQueued } from '#shared/populate/job/attempts.ts';
import { parseLimits, readLimits } from '#shared/populate/queue/limits.ts';
import { type WaitingTransfer, orderQueue } from '#shared/populate/queue/order.ts';

const Ledger = z.object({
  /** UIDs of Jobs that were admitted and have not ended. They may still be suspended. */
  admitted: z.array(z.string()).default([]),
  /** Seconds since the epoch: when Jobs were admitted, the latest last. */
  times: z.array(z.number()).default([]),
  /** As many as may run in the whole cluster did, and others waited: a Job that is created then need not be looked at. */
  isFull: z.boolean().default(false),
});
type Ledger = z.infer<typeof Ledger>;

const mostTimes = 50;
const maxRounds = 5;
const key = { namespace: systemNamespace, name: transferQueue } as const;

interface QueuedJob extends WaitingTransfer {
  readonly job: Job;
}

/** Values of the priority classes that are named. They are read only if there are any. */
const readPriorities = async (kube: KubeClient, waiting: readonly Job[]): Promise<ReadonlyMap<string, number>> => {
  if (waiting.every(({ spec }) => spec.template.spec.priorityClassName === undefined)) return new Map();
  const { items } = await kube.list(priorityClasses);
  return new Map(items.map(({ metadata, value }) => [metadata.name, value]));
};

const transferOf = (job: Job, priorities: ReadonlyMap<string, number>): QueuedJob => ({
  job,
  uid: job.metadata.uid ?? '',
  namespace: job.metadata.namespace ?? '',
  host: job.metadata.annotations?.[annotations.sourceHost],
  priority: priorities.get(job.spec.template.spec.priorityClassName ?? '') ?? 0,
  since: job.metadata.creationTimestamp ?? '',
});

/** For people. Beyond the first ten it is rounded, so that it does not change each time that one starts. */
const placeOf = (index: number, count: number, secondsEach: number | undefined): string => {
  const unit = index < 10 ? 1 : index < 100 ? 10 : 100;
  const before = Math.floor(index / unit) * unit;
  const place = unit === 1 ? `${index + 1} of ${count}` : `after the first ${before}`;
  const minutes = secondsEach === undefined ? undefined : Math.ceil(((before + 1) * secondsEach) / 60);
  return minutes === undefined ? place : `${place}, about ${minutes} min`;
};

/** Mean seconds between admissions; `undefined`: there were too few. */
const paceOf = (times: Ledger['times'], now: number): number | undefined => {
  const [first] = times;
  return first === undefined || times.length < 3 ? undefined : Math.max(0, now / 1000 - first) / times.length;
};

interface Pass {
  /** Milliseconds since the epoch. */
  readonly now: number;
  /** `tick` also updates the place of every Job that waits. */
  readonly cause: 'created' | 'ended' | 'tick';
}

/** Does nothing to a Job that was deleted or replaced meanwhile. */
const change = async (kube: KubeClient, job: Job, metadata: object, spec?: object): Promise<void> => {
  const patch = { metadata: { uid: job.metadata.uid, ...metadata }, ...(spec === undefined ? {} : { spec }) };
  await tolerate(kube.mergePatch(jobs, keyOf(job), patch), isChangedMeanwhile);
};

const admit = (kube: KubeClient, job: Job): Promise<void> => {
  const marks = { labels: { [labels.queue]: 'running' }, annotations: { [annotations.queuePlace]: null } };
  return change(kube, job, marks, { suspend: false });
};

const showPlace = async (kube: KubeClient, job: Job, place: string): Promise<void> => {
  if (job.metadata.annotations?.[annotations.queuePlace] === place) return;
  await change(kube, job, { annotations: { [annotations.queuePlace]: place } });
};

/** What a pass found, of Jobs that limits apply to. */
interface Found {
  /** Admitted. */
  readonly running: readonly Job[];
  /** Admitted by an earlier pass that did not resume them. */
  readonly due: readonly Job[];
  readonly waiting: readonly Job[];
  readonly ended: readonly Job[];
}

const find = async (kube: KubeClient, ledger: Ledger): Promise<Found> => {
  const listed = await Array.fromAsync(kube.listAll(jobs, { labelSelector: labels.queue }));
  const found = Object.groupBy(listed, (job) => {
    if (isFinished(job)) return 'ended';
    if (job.metadata.deletionTimestamp !== undefined || job.metadata.labels?.[labels.starting] !== undefined)
      return 'other';
    const isAdmitted = ledger.admitted.includes(job.metadata.uid ?? '');
    if (isQueued(job)) return isAdmitted ? 'due' : 'waiting';
    return isAdmitted ? 'running' : 'other';
  });
  const { running = [], due = [], waiting = [], ended = [] } = found;
  return { running, due, waiting, ended };
};

const decide = async (kube: KubeClient, { running, due, waiting }: Found) => {
  const priorities = await readPriorities(kube, waiting);
  const toTransfers = (some: readonly Job[]) => some.map((job) => transferOf(job, priorities));
  const { limits } = (await readLimits(kube)) ?? parseLimits({});
  const order = orderQueue(limits, toTransfers(waiting), toTransfers([...running, ...due]));
  const admitted = [...running, ...due, ...order.admitted.map(({ job }) => job)];
  return {
    ...order,
    uids: admitted.map(({ metadata }) => metadata.uid ?? ''),
    isFull: order.waiting.length > 0 && admitted.length >= (limits.running ?? Infinity),
  };
};

const runPass = async (kube: KubeClient, { now, cause }: Pass): Promise<void> => {
  const lease = await kube.get(leases, key);
  const ledger = readLedger(Ledger, lease);
  if (cause === 'created' && ledger.isFull) return;
  const found = await find(kube, ledger);
  if (Object.values(found).every((some) => some.length === 0) && !ledger.isFull) return;
  const { admitted, waiting, uids, isFull } = await decide(kube, found);
  const times = [...ledger.times, ...admitted.map(() => Math.floor(now / 1000))].slice(-mostTimes);
  await writeLedger(kube, { key, lease, ledger: { admitted: uids, times, isFull } satisfies Ledger });
  for (const job of [...found.due, ...admitted.map(({ job }) => job)]) await admit(kube, job);
  for (const job of found.ended) await change(kube, job, { labels: { [labels.queue]: null } });
  const pace = paceOf(times, now);
  for (const [index, { job }] of waiting.entries())
    if (cause === 'tick' || job.metadata.annotations?.[annotations.queuePlace] === undefined)
      await showPlace(kube, job, placeOf(index, waiting.length, pace));
};

const isEmpty = async (kube: KubeClient): Promise<boolean> =>
  (await kube.list(jobs, { labelSelector: labels.queue, limit: 1 })).items.length === 0;

/** Admits what the limits allow. A tick costs one request where no transfer is limited. */
export const advanceQueue = async (kube: KubeClient, pass: Pass): Promise<void> => {
  if (pass.cause === 'tick' && (await isEmpty(kube))) return;
  // Another pass that was first may not have observed what this one is for.
  await retryConflicts(maxRounds, () => runPass(kube, pass));
};
