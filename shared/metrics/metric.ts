// Samples of metrics, their builders, and the text format of Prometheus. All are gauges: recomputed from objects, they decrease when objects
// are deleted.
import type { KubeObject } from '#shared/api/object.ts';
import type { Reconciler } from '#shared/resources/reconciler.ts';

export interface Metric {
  readonly name: string;
  readonly help: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly value: number;
}

/** Creates samples of one metric. */
export const gauge =
  (name: string, help: string) =>
  (value: number, labels: Metric['labels'] = {}): Metric => ({ name, help, labels, value });

const escapeHelp = (text: string): string => text.replaceAll('\\', '\\\\').replaceAll('\n', '\\n');
const escapeLabel = (text: string): string => escapeHelp(text).replaceAll('"', '\\"');

const sampleOf = ({ name, labels, value }: Metric): string => {
  const pairs = Object.entries(labels).map(([label, text]) => `${label}="${escapeLabel(text)}"`);
  return `${name}${pairs.length === 0 ? '' : `{${pairs.join(',')}}`} ${value}`;
};

/** Prometheus' text format 0.0.4: the samples of one metric follow its help. */
export const toText = (metrics: readonly Metric[]): string =>
  [...Map.groupBy(metrics, ({ name }) => name)]
    .map(([name, samples]) => {
      const help = escapeHelp(samples[0]?.help ?? '');
      return `# HELP ${name} ${help}\n# TYPE ${name} gauge\n${samples.map(sampleOf).join('\n')}\n`;
    })
    .join('');

export const textType = 'text/plain; version=0.0.4; charset=utf-8';

/** Interface of every part of the metrics: it visits the objects one after the other and returns its samples at the end. */
export interface Counter {
  /** `reconciled` for objects of served kinds. */
  readonly visit: (object: KubeObject, reconciler?: Reconciler) => void;
  readonly metrics: () => readonly Metric[];
}

/** Sums by labels: objects are counted as they are visited and not kept. */
interface Tally {
  readonly add: (labels: Metric['labels'], amount?: number) => void;
  readonly metrics: () => readonly Metric[];
}

/** `always`: samples that are present with zero if nothing was added, so that an alert can distinguish none from unknown. */
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
