// The KubeClient of a pod or a user. Created once by the entry point and passed in.
import { HttpMethod, KubeConfig, RequestContext } from '@kubernetes/client-node';
import { type Dispatcher, request } from 'undici';
import type { KubeClient } from './client.ts';
import { createClientOver } from './verbs.ts';
import { accepted, faultOf, type Transport, type TransportRequest } from './wire.ts';
import { currentContext, traceHeaders } from '#shared/runtime/trace.ts';
import { messageOf, Unavailable } from '#shared/runtime/errors.ts';

// HTTP to the Kubernetes API: addresses, credentials and TLS are configured by @kubernetes/client-node, requests are sent by undici.

/** Timeout in milliseconds of a request that is not a watch. */
const requestTimeoutMs = 30_000;

interface Credentials {
  readonly headers: Record<string, string | string[]>;
  readonly dispatcher: Dispatcher | undefined;
}

/**
 * Milliseconds for which connections are reused before certificates are read again; a rotated certificate is valid long before the old one
 * expires.
 */
const dispatcherAgeMs = 300_000;

/** Headers are created for each request (tokens rotate); connections are reused, since client-node would open one per request. */
const createCredentials = (config: KubeConfig, more: MoreHeaders): ((url: string) => Promise<Credentials>) => {
  let kept: { readonly dispatcher: Dispatcher | undefined; readonly until: number } | undefined;
  return async (url) => {
    const context = new RequestContext(url, HttpMethod.GET);
    await config.applySecurityAuthentication(context);
    if (kept === undefined || kept.until < performance.now()) {
      // Closes its connections after their requests and watches have ended.
      void kept?.dispatcher?.close();
      kept = {
        dispatcher: overHttp1(context.getDispatcher() as Dispatcher | undefined),
        until: performance.now() + dispatcherAgeMs,
      };
    }
    const headers: Record<string, string | string[]> = {};
    for (const [name, values] of Object.entries(more)) headers[name] = [...values];
    for (const [name, value] of Object.entries(context.getHeaders())) headers[name] = String(value);
    return { headers, dispatcher: kept.dispatcher };
  };
};

/**
 * One connection per request in flight. With HTTP/2 all requests and watches would share one, which kube-apiserver closes for all of them after
 * a request that fails authentication.
 */
const overHttp1 = (dispatcher: Dispatcher | undefined): Dispatcher | undefined =>
  dispatcher?.compose((dispatch) => (options, handler) => {
    const http1Only = { ...options, allowH2: false };
    return dispatch(http1Only, handler);
  });

const send = async (url: string, credentials: Credentials, call: TransportRequest) => {
  const isWatch = call.signal !== undefined;
  try {
    return await request(url, {
      method: call.method,
      ...(credentials.dispatcher === undefined ? {} : { dispatcher: credentials.dispatcher }),
      headers: {
        ...credentials.headers,
        ...traceHeaders(currentContext().trace),
        accept: accepted,
        ...(call.body === undefined ? {} : { 'content-type': call.contentType ?? 'application/json' }),
      },
      body: call.body ?? null,
      signal: call.signal ?? AbortSignal.timeout(requestTimeoutMs),
      headersTimeout: requestTimeoutMs,
      bodyTimeout: isWatch ? 0 : requestTimeoutMs,
    });
  } catch (error) {
    if (call.signal?.aborted === true) throw error;
    throw new Unavailable(`Kubernetes API: ${call.method} ${url} failed: ${messageOf(error)}`, { cause: error });
  }
};

export type MoreHeaders = Readonly<Record<string, readonly string[]>>;

export const createTransport = (config: KubeConfig, more: MoreHeaders = {}): Transport => {
  const cluster = config.getCurrentCluster();
  if (cluster === null) throw new Unavailable('the kubeconfig has no current cluster');
  const credentialsOf = createCredentials(config, more);
  return async (call) => {
    const url = cluster.server.replace(/\/$/, '') + call.path;
    const response = await send(url, await credentialsOf(url), call);
    if (response.statusCode < 300) return response;
    throw await faultOf(response, `${call.method} ${call.path}`);
  };
};

/** The configuration of a pod or a user: `KUBECONFIG`, `~/.kube/config`, or the service account of the pod. */
export const loadKubeConfig = (path?: string): KubeConfig => {
  const config = new KubeConfig();
  if (path === undefined) config.loadFromDefault();
  else config.loadFromFile(path);
  return config;
};

/** `headers`: sent with every request, in addition to those of the configuration. */
export const createKubeClient = (config: KubeConfig, headers: MoreHeaders = {}): KubeClient =>
  createClientOver(createTransport(config, headers), config.getCurrentCluster()?.server ?? '');
