// Entry point: reads the configuration, creates the clients, serves.
import { createApp, withStores } from '#functions/import-object/app.ts';
import { Config } from '#functions/import-object/config.ts';
import { createObjectImportDeps } from '#shared/object-import/settings.ts';
import { callerRulesOf, discoverIssuer, withCaller } from '#shared/runtime/caller.ts';
import { loadConfig } from '#shared/runtime/config.ts';
import { createLogger } from '#shared/runtime/log.ts';
import { serve } from '#shared/runtime/serve.ts';
import { createTracer, traced } from '#shared/runtime/tracer.ts';

const config = loadConfig(Config);
const log = createLogger({ level: config.logLevel });
const deps = createObjectImportDeps(config, log);
const tracer = createTracer({ endpoint: config.traceEndpoint, service: 'import-object', log });
const traceable = traced(createApp({ ...deps, token: config.notificationToken }), tracer);
const asked = withCaller(traceable, callerRulesOf(config), { discover: () => discoverIssuer(deps.kube), log });
const app = withStores(traceable, asked, config.notificationToken);
await serve({ app, log, port: config.port, host: config.host }, tracer?.flush);
