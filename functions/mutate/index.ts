// Entry point of `mutate`.
import { createApp } from './app.ts';
import { Config } from './config.ts';
import { serveCertificate } from '#shared/certificate/served.ts';
import { createLateKubeClient } from '#shared/clients/kube/late.ts';
import { createCdiLook } from '#shared/resources/cdi-mode.ts';
import { loadConfig, tlsFilesOf } from '#shared/runtime/config.ts';
import { createLogger } from '#shared/runtime/log.ts';
import { serve } from '#shared/runtime/serve.ts';

const config = loadConfig(Config);
const log = createLogger({ level: config.logLevel, fields: { function: 'mutate' } });
const kube = createLateKubeClient(config.kubeconfig);
const files = tlsFilesOf(config);
const served = config.tlsFromSecret && files === undefined ? serveCertificate(kube, log) : undefined;
await serve({
  app: createApp({ kube, log, cdi: createCdiLook(kube, config.cdi) }),
  log,
  port: config.port,
  host: config.host,
  tls: files ?? served,
  ...(served === undefined ? {} : { isReady: served.isServed }),
  warm: kube.warm,
});
