// An HTTP or HTTPS server for a function: health, certificate reload and graceful shutdown. Called by functions/*/index.ts and tests.
import {
  type IncomingMessage,
  type RequestListener,
  type Server,
  type ServerResponse,
  createServer as createHttpServer,
} from 'node:http';
import type { Server as HttpsServer } from 'node:https';
import type { Socket } from 'node:net';
import type { TLSSocket } from 'node:tls';
import { type TlsFiles, type TlsSource, readCertificate, reloadCertificate } from '#shared/runtime/certificate.ts';
import { type DirectApp, answerDirectly } from '#shared/runtime/direct.ts';
import type { Logger } from '#shared/runtime/log.ts';
import { closeOnceRead, dropUnread, listen } from '#shared/runtime/connections.ts';
import { handshakeTimeoutMs } from '#shared/runtime/connections.ts';

/** Above the 90 s for which Knative's queue-proxy keeps idle connections, so that it never writes to a connection that was just closed. */
const keepAliveTimeoutMs = 95_000;
/** Milliseconds for requests in flight to finish at shutdown. */
const defaultDrainMs = 25_000;

export interface ServeOptions {
  readonly app: { fetch(request: Request): Response | Promise<Response> } & Partial<DirectApp>;
  readonly log: Logger;
  /** 0 takes a free port. */
  readonly port: number;
  readonly host?: string;
  /** Reloaded when it changes. Default: plain HTTP. */
  readonly tls?: TlsFiles | TlsSource | undefined;
  /** PEM: clients may present a certificate of this authority; `peerNameOf` returns its name. HTTPS only. */
  readonly clientCa?: string | undefined;
  /** Milliseconds for one request to arrive; 0: no limit. Default: Node's own limit, five minutes. */
  readonly requestTimeoutMs?: number | undefined;
  /** Milliseconds for the headers of a request to arrive, regardless of its body. Default: one minute. */
  readonly headersTimeoutMs?: number | undefined;
  /** Slow initialization that must delay neither the start nor the first request: started after the first health check was answered. */
  readonly warm?: (() => Promise<unknown>) | undefined;
  /** The answer of `/readyz`. Must be cheap and call no dependency. */
  readonly isReady?: () => boolean;
  /** The answer of `/healthz`: false has the process killed and started again. Default: it is alive while it answers. */
  readonly isAlive?: () => boolean;
  /** Milliseconds for requests in flight to finish after close(); then their connections are destroyed. */
  readonly drainMs?: number;
}

/** Verified common names of clients, for the lifetime of their requests. */
const peerNames = new WeakMap<Request, string>();

/** Common name of the client's certificate; `undefined` if it presented none, or one of another authority. */
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
  /** `/readyz` fails from now on and clients are asked to close their connections; requests are still answered. */
  leave(): void;
  /** Finishes requests in flight, refuses new connections, resolves when all are closed. */
  close(): Promise<void>;
}

/** Listens; rejects if the address is in use or the certificate cannot be read. */
export const startServer = async (options: ServeOptions): Promise<RunningServer> => {
  const { host = '127.0.0.1', port, tls, log } = options;
  const state = { isDraining: false };
  const bridge = createBridge(options, state);
  const server = await createServer(options, createListener(options, state, bridge));
  const stopReloading =
    tls === undefined ? () => undefined : reloadCertificate(server as HttpsServer, tls, log, options.clientCa);
  const bound = await listen(server, { port, host });
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
 * Milliseconds during which a Service may still route requests to a terminating pod, until every node has been updated. Knative's queue-proxy
 * implements this delay for functions behind it. TLS servers are called directly, by an API server that rejects writes if it cannot connect.
 */
export const lingerMs = 5_000;

/** The main function of an entry point: serves until SIGTERM or SIGINT, drains, runs `onClose` and exits. */
export const serve = async (options: ServeOptions, onClose?: () => Promise<void>): Promise<void> => {
  // Registered first: process 1 of a container ignores signals without a handler.
  const received = new Promise<NodeJS.Signals>((resolve) => {
    process.once('SIGTERM', resolve);
    process.once('SIGINT', resolve);
  });
  const lingers = options.tls !== undefined;
  // Both delays together end before Kubernetes kills the pod (default grace period: 30 s).
  const drainMs = options.drainMs ?? defaultDrainMs - (lingers ? lingerMs : 0);
  const server = await startServer({ ...options, drainMs });
  options.log.info('listening', { url: server.url });
  const signal = await received;
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
    // Set explicitly: without a request timeout Node has no headers timeout, and a client that never ends its headers would keep the connection
    // forever.
    headersTimeout: headersTimeoutMs,
    connectionsCheckingInterval: Math.min(30_000, headersTimeoutMs),
    ...(requestTimeoutMs === undefined ? {} : { requestTimeout: requestTimeoutMs }),
  };
  if (tls === undefined) return createHttpServer(serverOptions, listener);
  const trust = clientCa === undefined ? {} : { ca: clientCa, requestCert: true, rejectUnauthorized: false };
  // Loaded only for TLS.
  const { createServer: createHttpsServer } = await import('node:https');
  return createHttpsServer(
    { ...serverOptions, handshakeTimeout: handshakeTimeoutMs, ...trust, ...readCertificate(tls) },
    listener,
  );
};

/** Asks clients to close the connection while draining, since a kept-alive connection would keep the server open. */
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
 * Connects Node's requests to the app. It needs Node's fetch, which takes longer to load than the rest of the start, so it is loaded after the
 * first health check was answered.
 */
const createBridge = (options: ServeOptions, state: { readonly isDraining: boolean }) => {
  let loading: Promise<RequestListener> | undefined;
  const load = async (): Promise<RequestListener> => {
    const { getRequestListener } = await import('@hono/node-server');
    return getRequestListener(withFarewell(options, state) as never, {
      overrideGlobalObjects: false,
      // The default implementation does not read on after a stream, and destroys the connection after half a second.
      autoCleanupIncoming: false,
    }) as RequestListener;
  };
  return () => (loading ??= load());
};

/** Health checks are answered without the bridge. */
const createListener = (
  { app, isReady = () => true, isAlive = () => true, log, warm }: ServeOptions,
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
    health(response, path === '/healthz' ? isAlive() : isReady() && !state.isDraining);
    // A health check precedes the first request. A failure is reported by the request that needs the result.
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
    // A connection that was busy before may be idle now, without having been asked to close.
    const sweep = setInterval(() => server.closeIdleConnections(), 100);
  });
