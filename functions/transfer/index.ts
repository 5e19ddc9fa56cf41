import { createApp, createTokenApp } from '#functions/transfer/app.ts';
import { TransferConfig, toServeSettings } from '#functions/transfer/config.ts';
import { createLateKubeClient } from '#shared/clients/kube/late.ts';
import { readFrontProxy } from '#shared/exchange/access/caller.ts';
import { createExchangeDeps } from '#shared/exchange/settings.ts';
import { loadConfig, tlsFilesOf } from '#shared/runtime/config.ts';
import { createLogger } from '#shared/runtime/log.ts';
import { serve } from '#shared/runtime/serve.ts';

const config = loadConfig(TransferConfig);
const { port, host, logLevel, kubeconfig } = config;
const log = createLogger({ level: logLevel, fields: { function: 'transfer' } });
const kube = createLateKubeClient(kubeconfig);
const deps = createExchangeDeps({ ...config, settings: toServeSettings(config) }, kube, log);
const tls = tlsFilesOf(config);
if (tls === undefined) await serve({ app: createApp(deps), log, port, host, requestTimeoutMs: 0, warm: kube.warm });
else {
  const { ca, isFrontProxy } = await readFrontProxy(kube);
  await serve({ app: createTokenApp({ ...deps, isFrontProxy }), log, port, host, tls, clientCa: ca });
}
