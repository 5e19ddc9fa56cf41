// An HTTP or HTTPS server around a function: health, certificate reload and a graceful end. Called by functions/*/index.ts and tests.
import {
  type IncomingMessage,
  type RequestListener,
  type Server,
  type ServerResponse,
  createServer as createHttpServer,
} from 'node:http';
import type { Server as HttpsServer } from 'node:https';
import type { AddressInfo, Socket } from 'node:net';
import type { TLSSocket } from 'node:tls';
import { type TlsFiles, readCertificate, reloadCertificate } from '#shared/runtime/certificate.ts';
import { type DirectApp, answerDirectly } from '#shared/runtime/direct.ts';
import type { Logger } from '#shared/runtime/log.ts';
import { closeOnceRead, dropUnread } from '#shared/runtime/connections.ts';
import { boundConnections, handshakeTimeoutMs } from '#shared/runtime/connections.ts';

/** Above the 90 s for which Knative's queue-proxy keeps idle connections, so that it never writes into one we just closed. */
const keepAliveTimeoutMs = 95_000;
/** Milliseconds that what is in flight may still take when the server ends. */
const defaultDrainMs = 25_000;

export interface ServeOptions {
  readonly app: { fetch(request: Request): Response | Promise<Response> } & Partial<DirectApp>;
  readonly log: Logger;
  /** 0 takes a free port. */
  readonly port: number;
  readonly host?: string;
  /** PEM files; read again when they change. Plain HTTP when left out. */
  readonly tls?: TlsFiles | undefined;
  /** PEM: clients may show a certificate of this authority; `peerNameOf` tells its name. For HTTPS only. */
  readonly clientCa?: string | undefined;
  /** Milliseconds one request may take to arrive; 0: as long as it likes. Node's own limit, five minutes, when left out. */
  readonly requestTimeoutMs?: number | undefined;
  /** Milliseconds for the headers of a request to arrive, whatever its body may take; a minute when left out. */
  readonly headersTimeoutMs?: number | undefined;
  /** What the first request would have to wait for and no start should: begun once health was answered. */
  readonly warm?: (() => Promise<unknown>) | undefined;
  /** Whether `/readyz` says yes. Must be cheap and touch no dependency. */
  readonly isReady?: () => boolean;
  /** Milliseconds that requests in flight get after close() before their connections are cut. */
  readonly drainMs?: number;
}

/** Common names that requests' clients have proven, as long as the requests are there. */
const peerNames = new WeakMap<Request, string>();

/** Common name of the client's certificate; `undefined` where it showed none, or one of another authority. */
export const peerNameOf = (request: Request): string | undefined => peerNames.get(request);

const notePeer = (request: Request, socket: Socket | undefined): void => {
  const { authorized, getPeerCertificate } = (socket ?? {}) as Partial<TLSSocket>;
  if (authorized !== true || getPeerCertificate === undefined) return;
  const { subject } = getPeerCertificate.call(socket as TLSSocket);
  const name = subject?.CN;
  if (typeof name === 'string') peerNames.set(request, name);
};

export interface RunningServer {
  /** Such as `http://127.0.0.1:8080`. */
  readonly url: string;
  readonly port: number;
  /** From now on `/readyz` says no and clients are asked to go elsewhere, while whoever comes is still answered. */
  leave(): void;
  /** Answers what is in flight, refuses new connections, resolves when all are closed. */
  close(): Promise<void>;
}

/** Starts to listen; rejects when the address is taken or the certificate cannot be read. */
export const startServer = async (options: ServeOptions): Promise<RunningServer> => {
  const { host = '127.0.0.1', port, tls, log } = options;
  const state = { isDraining: false };
  const bridge = createBridge(options, state);
  const server = await createServer(options, createListener(options, state, bridge));
  boundConnections(server);
  const stopReloading =
    tls === undefined ? () => undefined : reloadCertificate(server as HttpsServer, tls, log, options.clientCa);
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject);
    server.listen(port, host, resolve);
  });
  const bound = (server.address() as AddressInfo).port;
  const name = host.includes(':') ? `[${host}]` : host;
  const leave = (): void => void (state.isDraining = true);
  return {
    url: `${tls === undefined ? 'http' : 'https'}://${name}:${bound}`,
    port: bound,
    leave,
    close: () => {
      leave();
      stopReloading();
      return drain(server, options.drainMs ?? defaultDrainMs);
    },
  };
};

/**
 * Milliseconds in which a Service may go on to send here after the pod was told to end: until every node has heard of it. Where Knative's queue-proxy
 * is in front, that waits so; what serves TLS is reached directly, by an API server that refuses writes when it finds nobody.
 */
const lingerMs = 5_000;

/** The main line of a function's entry point: serves until SIGTERM or SIGINT, drains, runs `onClose` and exits. */
export const serve = async (options: ServeOptions, onClose?: () => Promise<void>): Promise<void> => {
  // From the first moment: process 1 of a container never hears what it does not listen for.
  const told = new Promise<NodeJS.Signals>((resolve) => {
    process.once('SIGTERM', resolve);
    process.once('SIGINT', resolve);
  });
  const lingers = options.tls !== undefined;
  // Both together end before Kubernetes kills what it told to end, after 30 s as it is installed.
  const drainMs = options.drainMs ?? defaultDrainMs - (lingers ? lingerMs : 0);
  const server = await startServer({ ...options, drainMs });
  options.log.info('listening', { url: server.url });
  const signal = await told;
  server.leave();
  options.log.info('draining', { signal });
  if (lingers) await new Promise((resolve) => setTimeout(resolve, lingerMs));
  await server.close();
  await onClose?.();
  options.log.info('stopped');
  process.exit(0);
};

const createServer = async (options: ServeOptions, listener: RequestListener): Promise<Server | HttpsServer> => {
  const { requestTimeoutMs, headersTimeoutMs = 60_000, clientCa, tls } = options;
  const serverOptions = {
    keepAliveTimeout: keepAliveTimeoutMs,
    // Said even so: Node takes none where a request has no limit, and whoever never ends his headers would stay for ever.
    headersTimeout: headersTimeoutMs,
    connectionsCheckingInterval: Math.min(30_000, headersTimeoutMs),
    ...(requestTimeoutMs === undefined ? {} : { requestTimeout: requestTimeoutMs }),
  };
  if (tls === undefined) return createHttpServer(serverOptions, listener);
  const trust = clientCa === undefined ? {} : { ca: clientCa, requestCert: true, rejectUnauthorized: false };
  // TLS is loaded by servers that speak it.
  const { createServer: createHttpsServer } = await import('node:https');
  return createHttpsServer(
    { ...serverOptions, handshakeTimeout: handshakeTimeoutMs, ...trust, ...readCertificate(tls) },
    listener,
  );
};

/** Tells clients to leave once draining, since a kept-alive connection would hold the server open. */
const withFarewell =
  ({ app }: ServeOptions, state: { readonly isDraining: boolean }) =>
  async (request: Request, bindings?: { readonly incoming?: IncomingMessage }): Promise<Response> => {
    notePeer(request, bindings?.incoming?.socket);
    const response = await app.fetch(request);
    if (!state.isDraining || (bindings?.incoming !== undefined && !bindings.incoming.complete)) return response;
    const headers = new Headers(response.headers);
    headers.set('connection', 'close');
    return new Response(response.body, { status: response.status, headers });
  };

/**
 * The bridge from Node's requests to the app. It comes with Node's fetch, which takes longer to load than all the rest of a start: it is
 * loaded once health was answered, while whoever asked still sets out to send something.
 */
const createBridge = (options: ServeOptions, state: { readonly isDraining: boolean }) => {
  let loading: Promise<RequestListener> | undefined;
  const load = async (): Promise<RequestListener> => {
    const { getRequestListener } = await import('@hono/node-server');
    return getRequestListener(withFarewell(options, state) as never, {
      overrideGlobalObjects: false,
      // Theirs does not read on behind a stream, and cuts the connection after half a second.
      autoCleanupIncoming: false,
    }) as RequestListener;
  };
  return () => (loading ??= load());
};

/** Health is answered without the bridge. */
const createListener = (
  { app, isReady = () => true, log, warm }: ServeOptions,
  state: { readonly isDraining: boolean },
  bridge: () => Promise<RequestListener>,
): RequestListener => {
  const giveUp = (response: ServerResponse) => (error: unknown) => {
    log.error('the server cannot take requests', { error });
    response.writeHead(500).end();
  };
  return (request, response) => {
    const { method = '', url = '' } = request;
    closeOnceRead(request, response);
    response.once('finish', () => dropUnread(request));
    const path = url.split('?')[0];
    if (path !== '/healthz' && path !== '/readyz') {
      const direct = app.direct?.(method, url);
      if (direct === undefined) void bridge().then((listener) => listener(request, response), giveUp(response));
      else answerDirectly(direct, request, response, () => state.isDraining).catch(giveUp(response));
      return;
    }
    health(response, path === '/healthz' || (isReady() && !state.isDraining));
    // Whoever asks is about to send something. A failure is told to the request that needs it.
    response.once('finish', () => void Promise.allSettled([app.direct ?? bridge(), warm?.()]));
  };
};

const health = (response: ServerResponse, isWell: boolean): void =>
  void response.writeHead(isWell ? 200 : 503, { 'content-type': 'text/plain' }).end(isWell ? 'ok' : 'not ready');

const drain = (server: Server | HttpsServer, drainMs: number): Promise<void> =>
  new Promise((resolve) => {
    const timer = setTimeout(() => server.closeAllConnections(), drainMs);
    server.close(() => {
      clearTimeout(timer);
      clearInterval(sweep);
      resolve();
    });
    server.closeIdleConnections();
    // A connection that was busy at first may be idle now without having been told to close.
    const sweep = setInterval(() => server.closeIdleConnections(), 100);
  });
