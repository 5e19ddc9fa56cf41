// The Worker: `sidecar-sync`, called by Triggers over the internet. wrangler.jsonc has its settings.
import { z } from 'zod';
import { createApp } from '#functions/sidecar-sync/app.ts';
import { driverWorker, driverWorkerSettings } from '#infra/workers/driver-worker.ts';

export const Config = z.object(driverWorkerSettings);

export default driverWorker('sidecar-sync', createApp);
