// HTTP to the Kubernetes API by `fetch`, for environments without sockets, files or kubeconfigs: Workers. The certificate of the server must be
// trusted by the runtime.
import { accepted } from '#shared/clients/kube/wire.ts';
import { faultOf } from '#shared/clients/kube/wire.ts';
import type { Transport, TransportAnswer, TransportRequest } from '#shared/clients/kube/wire.ts';
import { currentContext, traceHeaders } from '#shared/runtime/trace.ts';
import { Unavailable, messageOf } from '#shared/runtime/errors.ts';

/** Timeout in milliseconds of a request that is not a watch. */
const requestTimeoutMs = 30_000;

export interface FetchAccess {
  /** URL of the API server. */
  readonly server: string;
  /** Token of the service account. */
  readonly token: string;
  /** Default: `fetch` of the runtime. */
  readonly fetch?: (url: string, init: RequestInit) => Promise<Response>;
}

const toAnswer = (response: Response): TransportAnswer => ({
  statusCode: response.status,
  headers: Object.fromEntries(response.headers),
  body: {
    json: () => response.json(),
    text: () => response.text(),
    async *[Symbol.asyncIterator]() {
      if (response.body !== null) yield* response.body;
    },
  },
});

const send = async (
  url: string,
  { token, fetch: ask = fetch }: FetchAccess,
  call: TransportRequest,
): Promise<Response> => {
  try {
    return await ask(url, {
      method: call.method,
      headers: {
        authorization: `Bearer ${token}`,
        ...traceHeaders(currentContext().trace),
        accept: accepted,
        ...(call.body === undefined ? {} : { 'content-type': call.contentType ?? 'application/json' }),
      },
      body: call.body ?? null,
      // The token must be sent only to this server.
      redirect: 'manual',
      signal: call.signal ?? AbortSignal.timeout(requestTimeoutMs),
    });
  } catch (error) {
    if (call.signal?.aborted === true) throw error;
    throw new Unavailable(`Kubernetes API: ${call.method} ${url} failed: ${messageOf(error)}`, { cause: error });
  }
};

export const createFetchTransport = (access: FetchAccess): Transport => {
  const base = access.server.replace(/\/$/, '');
  return async (call) => {
    const answer = toAnswer(await send(base + call.path, access, call));
    if (answer.statusCode < 300) return answer;
    throw await faultOf(answer, `${call.method} ${call.path}`);
  };
};
