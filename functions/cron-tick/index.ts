// Entry point: reads the configuration, makes the clients, serves.
import { createApp } from '#functions/cron-tick/app.ts';
import { Config } from '#functions/cron-tick/config.ts';
import { createDriverDeps } from '#shared/resources/settings.ts';
import { loadConfig } from '#shared/runtime/config.ts';
import { createLogger } from '#shared/runtime/log.ts';
import { serve } from '#shared/runtime/serve.ts';

const config = loadConfig(Config);
const log = createLogger({ level: config.logLevel });
const deps = { ...createDriverDeps(config, log), ownCertificate: config.ownCertificate };
await serve({ app: createApp(deps), log, port: config.port, host: config.host });
