// What the process answers, each on a port of its own. Called by single.ts.
import type { FetchHandler } from '#events/post.ts';
import { eventTypes } from '#events/catalogue.ts';
import { createApp as createConsole } from '#functions/console/app.ts';
import { withStores } from '#functions/import-object/app.ts';
import { createApp as createTransfer, createTokenApp } from '#functions/transfer/app.ts';
import type { Bus } from '#infra/local/eventing.ts';
import type { Functions } from '#infra/local/functions.ts';
import type { SingleConfig } from '#infra/single/config.ts';
import type { ServedCertificate } from '#shared/certificate/served.ts';
import type { KubeClient } from '#shared/clients/kube/client.ts';
import { oidcOptions } from '#shared/console/oidc.ts';
import { createVisitors } from '#shared/console/visit.ts';
import { readFrontProxy } from '#shared/exchange/access/caller.ts';
import { tlsFilesOf } from '#shared/runtime/config.ts';
import type { Logger } from '#shared/runtime/log.ts';
import { type RunningServer, type ServeOptions, startServer } from '#shared/runtime/serve.ts';

export interface ServerParts {
  readonly config: SingleConfig;
  readonly kube: KubeClient;
  readonly functions: Functions;
  readonly bus: Bus;
  readonly isReady: () => boolean;
  readonly isAlive: () => boolean;
  readonly log: Logger;
}

const refusal = (status: number, message: string): Response => new Response(`${message}\n`, { status });

/** Jobs of any namespace reach this port. All other events are sent within the process. */
export const createProgressIngress =
  ({ ingress }: Pick<Bus, 'ingress'>): FetchHandler =>
  (request) =>
    request.headers.get('ce-type') === eventTypes.transferProgressed
      ? ingress.fetch(request)
      : refusal(403, `only events of the type ${eventTypes.transferProgressed} are taken here`);

/** Without a token of their own, stores are not authenticated: an event is only a hint. */
const notifications = ({ functions, config }: ServerParts): { readonly fetch: FetchHandler } => {
  const app = { fetch: functions.notifyOfObject };
  const token = config.notificationToken;
  return token === undefined
    ? app
    : withStores(app, { fetch: () => refusal(401, 'NOTIFICATION_TOKEN is asked for') }, token);
};

/** Those that need no certificate. */
export const startPlainServers = async (parts: ServerParts): Promise<readonly RunningServer[]> => {
  const { config, functions, bus, log, isReady, isAlive } = parts;
  const { kubeconfig, sessionKey, consoleUrl, consolePort, host } = config;
  const start = async (of: string, options: Pick<ServeOptions, 'app' | 'port'> & Partial<ServeOptions>) => {
    const server = await startServer({ log, host, ...options });
    log.info('listening', { of, url: server.url });
    return server;
  };
  const transfer = createTransfer(functions.exchange);
  const servers = [
    await start('transfer', { app: transfer, port: config.port, requestTimeoutMs: 0, isReady, isAlive }),
    await start('events', { app: { fetch: createProgressIngress(bus) }, port: config.eventsPort }),
    await start('import-object', { app: notifications(parts), port: config.importPort }),
    await start('metrics', { app: functions.metrics, port: config.metricsPort }),
  ];
  if (consolePort === undefined) return servers;
  const visitors = {
    connect: createVisitors(kubeconfig),
    sessionKey,
    url: consoleUrl,
    oidc: oidcOptions(config, fetch),
  };
  const app = createConsole({ ...visitors, log, now: Date.now });
  return [...servers, await start('console', { app, port: consolePort })];
};

/** Ready once its certificate is there, which the leader makes. */
export const startAdmission = async ({ config, functions, log }: ServerParts, tls: ServedCertificate) => {
  const { host, admissionPort: port } = config;
  const server = await startServer({ app: functions.admission, log, host, port, tls });
  log.info('listening', { of: 'admission', url: server.url });
  return server;
};

/** The aggregated API, where its certificate is mounted. */
export const startUploadApi = async ({
  config,
  kube,
  functions,
  log,
}: ServerParts): Promise<readonly RunningServer[]> => {
  const tls = tlsFilesOf(config);
  const { uploadApiPort: port, host } = config;
  if (tls === undefined || port === undefined) return [];
  const { ca, isFrontProxy } = await readFrontProxy(kube);
  const app = createTokenApp({ ...functions.exchange, isFrontProxy });
  return [await startServer({ app, log, host, port, tls, clientCa: ca })];
};
