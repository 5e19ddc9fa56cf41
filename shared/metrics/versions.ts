// How many versions of each golden image are kept, whatever form each has: a data volume, a volume, a snapshot, or several at once.
import { cdiLabels } from '#shared/api/cdi/names.ts';
import type { Counter } from '#shared/metrics/counter.ts';
import { gauge, type Metric } from '#shared/metrics/metric.ts';

const versions = gauge('bullion_golden_image_versions', 'Versions of a golden image that are kept or on their way.');

export const createVersionCounter = (): Counter => {
  const crons = new Map<string, { readonly labels: Metric['labels']; readonly names: Set<string> }>();
  return {
    visit: ({ metadata }) => {
      const cron = metadata.labels?.[cdiLabels.cron];
      if (cron === undefined) return;
      const labels = { ns: metadata.namespace ?? '', cron_name: cron };
      const key = `${labels.ns}/${cron}`;
      const entry = crons.get(key) ?? { labels, names: new Set() };
      entry.names.add(metadata.name);
      crons.set(key, entry);
    },
    metrics: () => [...crons.values()].map(({ labels, names }) => versions(names.size, labels)),
  };
};
