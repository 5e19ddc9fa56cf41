// Sums by labels: objects are counted while they pass by, and nothing of them is kept.
import type { Metric } from '#shared/metrics/metric.ts';

export interface Tally {
  readonly add: (labels: Metric['labels'], amount?: number) => void;
  readonly metrics: () => readonly Metric[];
}

/** `always`: samples that are there with a zero where nothing was added, so that an alert can tell none from unknown. */
export const createTally = (
  make: (value: number, labels: Metric['labels']) => Metric,
  always: readonly Metric['labels'][] = [],
): Tally => {
  const sums = new Map<string, { readonly labels: Metric['labels']; sum: number }>();
  const add: Tally['add'] = (labels, amount = 1) => {
    const key = JSON.stringify(labels);
    const entry = sums.get(key) ?? { labels, sum: 0 };
    entry.sum += amount;
    sums.set(key, entry);
  };
  for (const labels of always) add(labels, 0);
  return { add, metrics: () => [...sums.values()].map(({ labels, sum }) => make(sum, labels)) };
};
