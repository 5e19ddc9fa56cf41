// The Worker: `metrics`, scraped over the internet. wrangler.jsonc has its settings.
import { z } from 'zod';
import { createApp } from '#functions/metrics/app.ts';
import { guarded } from '#infra/workers/guard.ts';
import {
  type WorkerEnvironment,
  clusterSettings,
  createWorkerKube,
  createWorkerLog,
  parseWorkerConfig,
  workerSettings,
} from '#infra/workers/settings.ts';
import { setting } from '#shared/runtime/config.ts';

export const Config = z.object({
  ...workerSettings,
  ...clusterSettings,
  scrapeToken: setting('SCRAPE_TOKEN', 'Bearer token that Prometheus must show; a secret.', z.string().min(1)),
});

export default {
  async fetch(request: Request, env: WorkerEnvironment): Promise<Response> {
    const config = parseWorkerConfig(Config, env);
    const log = createWorkerLog(config.logLevel, 'metrics');
    const app = createApp({ kube: createWorkerKube(config), log, now: Date.now });
    return guarded(app, request, { token: config.scrapeToken, name: 'SCRAPE_TOKEN' }, log);
  },
};
