// The Worker: `initialize`, called by Triggers over the internet. wrangler.jsonc has its settings.
import { z } from 'zod';
import { createApp } from '#functions/initialize/app.ts';
import { reconcileWorker, reconcileWorkerSettings } from '#infra/workers/reconcile-worker.ts';

export const Config = z.object(reconcileWorkerSettings);

export default reconcileWorker('initialize', createApp);
