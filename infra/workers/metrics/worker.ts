// The Worker: `metrics`, scraped over the internet. wrangler.jsonc has its settings.
import { z } from 'zod';
import { createApp } from '#functions/metrics/app.ts';
import { clusterSettings, clusterWorker, guarded } from '#infra/workers/cluster-worker.ts';
import { setting } from '#shared/runtime/config.ts';

export const Config = z.object({
  ...clusterSettings,
  scrapeToken: setting('SCRAPE_TOKEN', 'Bearer token of Prometheus; a secret.', z.string().min(1)),
});

export default clusterWorker('metrics', Config, ({ scrapeToken }, { kube, log }) =>
  guarded(createApp({ kube, log, now: Date.now }), { token: scrapeToken, name: 'SCRAPE_TOKEN' }, log),
);
