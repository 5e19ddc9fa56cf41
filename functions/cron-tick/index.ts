// Entry point: reads the configuration, creates the clients, serves.
import { createApp } from '#functions/cron-tick/app.ts';
import { Config } from '#functions/cron-tick/config.ts';
import { createReconcileDeps } from '#shared/resources/settings.ts';
import { callerRulesOf, discoverIssuer, withCaller } from '#shared/runtime/caller.ts';
import { loadConfig } from '#shared/runtime/config.ts';
import { createLogger } from '#shared/runtime/log.ts';
import { serve } from '#shared/runtime/serve.ts';
import { createTracer, traced } from '#shared/runtime/tracer.ts';

const config = loadConfig(Config);
const log = createLogger({ level: config.logLevel });
const { ownCertificate, publicUrl, sweepSeconds } = config;
const deps = { ...createReconcileDeps(config, log), ownCertificate, publicUrl, sweepSeconds };
const tracer = createTracer({ endpoint: config.traceEndpoint, service: 'cron-tick', log });
const traceable = traced(createApp(deps), tracer);
const app = withCaller(traceable, callerRulesOf(config), { discover: () => discoverIssuer(deps.kube), log });
await serve({ app, log, port: config.port, host: config.host, warm: deps.warm }, tracer?.flush);
