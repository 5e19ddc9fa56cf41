// What the process answers, each on a port of its own. Called by single.ts.
import type { FetchHandler } from '#events/post.ts';
import { eventTypes } from '#events/catalogue.ts';
import { createApp as createConsole } from '#functions/console/app.ts';
import { withStores } from '#functions/import-object/app.ts';
import { createApp as createTransfer, createTokenApp } from '#functions/transfer/app.ts';
import type { Bus } from '#infra/local/eventing.ts';
import type { Functions } from '#infra/local/functions.ts';
import type { SingleConfig } from '#infra/single/config.ts';
import { secrets } from '#shared/api/foreign/core.ts';
import { admissionCertificate, systemNamespace } from '#shared/api/names.ts';
import type { KubeClient } from '#shared/clients/kube/client.ts';
import { createVisitors } from '#shared/console/visitors.ts';
import { readFrontProxy } from '#shared/exchange/front-proxy.ts';
import type { TlsPair } from '#shared/runtime/certificate.ts';
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
  const app = createConsole({ connect: createVisitors(kubeconfig), sessionKey, url: consoleUrl, log, now: Date.now });
  return [...servers, await start('console', { app, port: consolePort })];
};

/** Resolves to `undefined` while there is no certificate. */
const readPair = async (kube: KubeClient): Promise<TlsPair | undefined> => {
  const secret = await kube.get(secrets, { namespace: systemNamespace, name: admissionCertificate.serverSecret });
  const textOf = (file: string): string => Buffer.from(secret?.data?.[file] ?? '', 'base64').toString();
  const pair = { cert: textOf('tls.crt'), key: textOf('tls.key') };
  return pair.cert === '' || pair.key === '' ? undefined : pair;
};

/** Milliseconds between two looks at the Secret: before there is a certificate, and afterwards. */
const looks = { first: 1_000, later: 60_000 } as const;

export interface AdmissionServer {
  readonly isUp: () => boolean;
  readonly leave: () => void;
  readonly close: () => Promise<void>;
}

/** Read from the API, not mounted: a pod that waits for the Secret that it makes itself would never start. */
export const startAdmission = ({ config, kube, functions, log }: ServerParts): AdmissionServer => {
  let pair: TlsPair | undefined;
  let server: RunningServer | undefined;
  let timer: NodeJS.Timeout | undefined;
  const { host, admissionPort: port } = config;
  const name = admissionCertificate.serverSecret;
  const look = async (): Promise<void> => {
    pair = (await readPair(kube)) ?? pair;
    const current = pair;
    if (current === undefined || server !== undefined) return;
    const tls = { name, pair: () => pair ?? current };
    server = await startServer({ app: functions.admission, log, host, port, tls });
    log.info('listening', { of: 'admission', url: server.url });
  };
  const keepLooking = async (): Promise<void> => {
    await look().catch((error: unknown) =>
      log.warn('the certificate of admission is not there', { secret: name, error }),
    );
    if (timer !== undefined)
      timer = setTimeout(() => void keepLooking(), server === undefined ? looks.first : looks.later);
  };
  timer = setTimeout(() => void keepLooking(), 0);
  return {
    isUp: () => server !== undefined,
    leave: () => server?.leave(),
    close: async () => {
      clearTimeout(timer);
      timer = undefined;
      await server?.close();
    },
  };
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
