// Serves metrics of the cluster, recomputed for each scrape.
import { Hono } from 'hono';
import { type MetricsDeps, collect } from '#shared/metrics/collect.ts';
import { textType, toText } from '#shared/metrics/metric.ts';

/** Answers scrapes. Concurrent scrapes share one answer. */
export const createApp = (deps: MetricsDeps): Hono => {
  let running: Promise<string> | undefined;
  const scrape = (): Promise<string> =>
    (running ??= collect(deps)
      .then(toText)
      .finally(() => (running = undefined)));
  return new Hono().get('/metrics', async (c) => c.body(await scrape(), 200, { 'content-type': textType }));
};
