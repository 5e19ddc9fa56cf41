// Answers scrapes. Those that come while one is being worked on share its answer.
import { Hono } from 'hono';
import { type MetricsDeps, collect } from '#shared/metrics/collect.ts';
import { textType, toText } from '#shared/metrics/metric.ts';

export const createMetricsApp = (deps: MetricsDeps): Hono => {
  let running: Promise<string> | undefined;
  const scrape = (): Promise<string> =>
    (running ??= collect(deps)
      .then(toText)
      .finally(() => (running = undefined)));
  return new Hono().get('/metrics', async (c) => c.body(await scrape(), 200, { 'content-type': textType }));
};
