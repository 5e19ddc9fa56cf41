// Metrics of the queue of transfers: how many wait, and for how long.
import { type Job, jobs } from '#shared/api/foreign/core.ts';
import { isQueued } from '#shared/populate/job/attempts.ts';
import { type Counter, type Metric, gauge } from '#shared/metrics/metric.ts';

const queued = gauge('bullion_queued_transfers', 'Transfers that wait because limits allow no more at once.');
const waits = gauge(
  'bullion_queue_wait_seconds',
  'Seconds that transfers in the queue have waited, or waited before they started, by quantile.',
);

const quantiles = [0.5, 0.99] as const;

const quantileOf = (sorted: readonly number[], quantile: number): number =>
  sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * quantile))] ?? 0;

/** Milliseconds since the epoch. */
export const createQueueCounter = (now: number): Counter => {
  const namespaces = new Map<string, { waiting: number; readonly seconds: number[] }>();
  return {
    visit: (object) => {
      if (object.kind !== jobs.kind) return;
      const job = object as Job;
      const { namespace = '', creationTimestamp = '' } = job.metadata;
      const entry = namespaces.get(namespace) ?? { waiting: 0, seconds: [] };
      namespaces.set(namespace, entry);
      const until = isQueued(job) ? now : Date.parse(job.status?.startTime ?? '');
      if (isQueued(job)) entry.waiting += 1;
      const seconds = (until - Date.parse(creationTimestamp)) / 1000;
      if (!Number.isNaN(seconds)) entry.seconds.push(Math.max(0, seconds));
    },
    metrics: () =>
      [...namespaces].flatMap(([ns, { waiting, seconds }]): readonly Metric[] => {
        const sorted = seconds.toSorted((a, b) => a - b);
        return [
          queued(waiting, { ns }),
          ...quantiles.map((quantile) => waits(quantileOf(sorted, quantile), { ns, quantile: String(quantile) })),
        ];
      }),
  };
};
