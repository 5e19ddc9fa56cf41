// The Worker: `sidecar-sync`, called by Triggers over the internet. wrangler.jsonc has its settings.
import { z } from 'zod';
import { createApp } from '#functions/sidecar-sync/app.ts';
import { reconcileWorker, reconcileWorkerSettings } from '#infra/workers/reconcile-worker.ts';

export const Config = z.object(reconcileWorkerSettings);

export default reconcileWorker('sidecar-sync', createApp);
