// Entry point of `single`: every function in one process.
import '#functions/transfer-job/heap.ts';
import { SingleConfig } from '#infra/single/config.ts';
import { startSingle } from '#infra/single/single.ts';
import { loadConfig } from '#shared/runtime/config.ts';
import { createLogger } from '#shared/runtime/log.ts';

// Registered first: process 1 of a container ignores signals without a handler.
const received = new Promise<NodeJS.Signals>((resolve) => {
  process.once('SIGTERM', resolve);
  process.once('SIGINT', resolve);
});
const config = loadConfig(SingleConfig);
const log = createLogger({ level: config.logLevel });
const single = await startSingle(config, log);
const signal = await received;
log.info('draining', { signal });
await single.stop();
log.info('stopped');
process.exit(0);
