// Entry point of `metrics`, which Prometheus scrapes.
import { createApp } from '#functions/metrics/app.ts';
import { Config } from '#functions/metrics/config.ts';
import { createLateKubeClient } from '#shared/clients/kube/late.ts';
import { loadConfig } from '#shared/runtime/config.ts';
import { createLogger } from '#shared/runtime/log.ts';
import { serve } from '#shared/runtime/serve.ts';

const config = loadConfig(Config);
const log = createLogger({ level: config.logLevel, fields: { function: 'metrics' } });
const kube = createLateKubeClient(config.kubeconfig);
const app = createApp({ kube, log, now: Date.now });
await serve({ app, log, port: config.port, host: config.host, warm: kube.warm });
