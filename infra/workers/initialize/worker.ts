// The Worker: `initialize`, called by Triggers over the internet. wrangler.jsonc has its settings.
import { z } from 'zod';
import { createApp } from '#functions/initialize/app.ts';
import { driverWorker, driverWorkerSettings } from '#infra/workers/driver-worker.ts';

export const Config = z.object(driverWorkerSettings);

export default driverWorker('initialize', createApp);
