// The Worker: `validate` and `mutate`, called by an API server over the internet. wrangler.jsonc has its settings.
import { Hono } from 'hono';
import { z } from 'zod';
import { createApp as createMutate } from '#functions/mutate/app.ts';
import { createApp as createValidate } from '#functions/validate/app.ts';
import { clusterSettings, clusterWorker, guarded } from '#infra/workers/cluster-worker.ts';
import { createCdiLook } from '#shared/resources/cdi-mode.ts';
import { addressSettings, cdiSettings, setting } from '#shared/runtime/config.ts';

export const Config = z.object({
  ...clusterSettings,
  webhookToken: setting('WEBHOOK_TOKEN', 'Bearer token of the API server; a secret.', z.string().min(1)),
  ...cdiSettings,
  ...addressSettings,
});

export default clusterWorker('admission', Config, ({ cdi, allowedAddresses, webhookToken }, { kube, log }) => {
  const deps = { kube, log, cdi: createCdiLook(kube, cdi), allowedAddresses };
  const app = new Hono().route('/', createValidate(deps)).route('/', createMutate(deps));
  return guarded(app, { token: webhookToken, name: 'WEBHOOK_TOKEN' }, log);
});
