// HTTP to the Kubernetes API: addresses, credentials and TLS come from @kubernetes/client-node, bytes move through undici.
import { HttpMethod, type KubeConfig, RequestContext } from '@kubernetes/client-node';
import { type Dispatcher, request } from 'undici';
import { faultOf } from '#shared/clients/kube/status.ts';
import { Unavailable, messageOf } from '#shared/runtime/errors.ts';

/** Milliseconds to wait for the answer of a request that is not a watch. */
const requestTimeoutMs = 30_000;

export interface TransportRequest {
  readonly method: Dispatcher.HttpMethod;
  readonly path: string;
  readonly body?: string | undefined;
  readonly contentType?: string | undefined;
  /** Set for a watch: no time-out, ends with the signal. */
  readonly signal?: AbortSignal | undefined;
}

/** Sends one request; throws an AppError for anything but 2xx. */
export type Transport = (request: TransportRequest) => Promise<Dispatcher.ResponseData>;

interface Credentials {
  readonly headers: Record<string, string>;
  readonly dispatcher: Dispatcher | undefined;
}

const credentialsOf = async (config: KubeConfig, url: string): Promise<Credentials> => {
  const context = new RequestContext(url, HttpMethod.GET);
  await config.applySecurityAuthentication(context);
  const headers: Record<string, string> = {};
  for (const [name, value] of Object.entries(context.getHeaders())) headers[name] = String(value);
  return { headers, dispatcher: context.getDispatcher() as Dispatcher | undefined };
};

const send = async (url: string, credentials: Credentials, call: TransportRequest) => {
  const isWatch = call.signal !== undefined;
  try {
    return await request(url, {
      method: call.method,
      ...(credentials.dispatcher === undefined ? {} : { dispatcher: credentials.dispatcher }),
      headers: {
        ...credentials.headers,
        accept: 'application/json',
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

export const createTransport = (config: KubeConfig): Transport => {
  const cluster = config.getCurrentCluster();
  if (cluster === null) throw new Unavailable('the kubeconfig names no current cluster');
  return async (call) => {
    const url = cluster.server.replace(/\/$/, '') + call.path;
    const response = await send(url, await credentialsOf(config, url), call);
    if (response.statusCode < 300) return response;
    throw await faultOf(response, `${call.method} ${call.path}`);
  };
};
