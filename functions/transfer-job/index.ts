// The process in the pod of a Job: reads its input from its environment and its Secret, runs once, exits.
import '#functions/transfer-job/heap.ts';
import { TransferJobConfig, withSecret } from '#functions/transfer-job/config.ts';
import { runJob } from '#functions/transfer-job/job.ts';
import { loadConfig } from '#shared/runtime/config.ts';
import { createLogger } from '#shared/runtime/log.ts';

const config = await withSecret(loadConfig(TransferJobConfig));
const cancelled = new AbortController();
process.once('SIGTERM', () => cancelled.abort());
process.once('SIGINT', () => cancelled.abort());
const log = createLogger({ fields: { function: 'transfer-job', run: config.run } });
process.exit(await runJob(config, { log, signal: cancelled.signal }));
