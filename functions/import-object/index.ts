// Entry point: reads the configuration, makes the clients, serves.
import { createApp } from '#functions/import-object/app.ts';
import { Config } from '#functions/import-object/config.ts';
import { createObjectImportDeps } from '#shared/object-import/settings.ts';
import { loadConfig } from '#shared/runtime/config.ts';
import { createLogger } from '#shared/runtime/log.ts';
import { serve } from '#shared/runtime/serve.ts';

const config = loadConfig(Config);
const log = createLogger({ level: config.logLevel });
const app = createApp({ ...createObjectImportDeps(config, log), token: config.notificationToken });
await serve({ app, log, port: config.port, host: config.host });
