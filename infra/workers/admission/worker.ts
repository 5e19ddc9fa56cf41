// The Worker: `validate` and `mutate`, asked by an API server over the internet. wrangler.jsonc has its settings.
import { Hono } from 'hono';
import { z } from 'zod';
import { createApp as createMutate } from '#functions/mutate/app.ts';
import { createApp as createValidate } from '#functions/validate/app.ts';
import { guarded } from '#infra/workers/guard.ts';
import {
  type WorkerEnvironment,
  clusterSettings,
  createWorkerKube,
  createWorkerLog,
  parseWorkerConfig,
  workerSettings,
} from '#infra/workers/settings.ts';
import { createCdiLook } from '#shared/resources/cdi-mode.ts';
import { addressSettings, cdiSettings, setting } from '#shared/runtime/config.ts';

export const Config = z.object({
  ...workerSettings,
  ...clusterSettings,
  webhookToken: setting('WEBHOOK_TOKEN', 'Bearer token that the API server must show; a secret.', z.string().min(1)),
  ...cdiSettings,
  ...addressSettings,
});

export default {
  async fetch(request: Request, env: WorkerEnvironment): Promise<Response> {
    const config = parseWorkerConfig(Config, env);
    const log = createWorkerLog(config.logLevel, 'admission');
    const kube = createWorkerKube(config);
    const { allowedAddresses } = config;
    const deps = { kube, log, cdi: createCdiLook(kube, config.cdi), allowedAddresses };
    const app = new Hono().route('/', createValidate(deps)).route('/', createMutate(deps));
    return guarded(app, request, { token: config.webhookToken, name: 'WEBHOOK_TOKEN' }, log);
  },
};
