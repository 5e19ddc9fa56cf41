// One sample of a metric, and the text Prometheus reads. Everything here is a gauge: it is recomputed from objects, so it falls when they go.

export interface Metric {
  readonly name: string;
  readonly help: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly value: number;
}

/** Makes samples of one metric. */
export const gauge =
  (name: string, help: string) =>
  (value: number, labels: Metric['labels'] = {}): Metric => ({ name, help, labels, value });

const escapeHelp = (text: string): string => text.replaceAll('\\', '\\\\').replaceAll('\n', '\\n');
const escapeLabel = (text: string): string => escapeHelp(text).replaceAll('"', '\\"');

const sampleOf = ({ name, labels, value }: Metric): string => {
  const pairs = Object.entries(labels).map(([label, text]) => `${label}="${escapeLabel(text)}"`);
  return `${name}${pairs.length === 0 ? '' : `{${pairs.join(',')}}`} ${value}`;
};

/** Prometheus' text format 0.0.4: the samples of one metric stand together below its help. */
export const toText = (metrics: readonly Metric[]): string =>
  [...Map.groupBy(metrics, ({ name }) => name)]
    .map(([name, samples]) => {
      const help = escapeHelp(samples[0]?.help ?? '');
      return `# HELP ${name} ${help}\n# TYPE ${name} gauge\n${samples.map(sampleOf).join('\n')}\n`;
    })
    .join('');

export const textType = 'text/plain; version=0.0.4; charset=utf-8';
