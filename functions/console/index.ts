// Entry point of `console`.
import { createApp } from '#functions/console/app.ts';
import { Config } from '#functions/console/config.ts';
import { oidcOptions } from '#shared/console/oidc.ts';
import { createVisitors } from '#shared/console/visit.ts';
import { loadConfig, tlsFilesOf } from '#shared/runtime/config.ts';
import { createLogger } from '#shared/runtime/log.ts';
import { serve } from '#shared/runtime/serve.ts';

const config = loadConfig(Config);
const { port, host, logLevel, kubeconfig, sessionKey, consoleUrl } = config;
const log = createLogger({ level: logLevel, fields: { function: 'console' } });
const oidc = oidcOptions(config, fetch);
const app = createApp({ connect: createVisitors(kubeconfig), sessionKey, url: consoleUrl, oidc, log, now: Date.now });
await serve({ app, log, port, host, tls: tlsFilesOf(config) });
