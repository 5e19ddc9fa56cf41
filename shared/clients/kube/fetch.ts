// HTTP to the Kubernetes API by `fetch`, where there are no sockets, files or kubeconfigs: in Workers. What the runtime trusts must be enough to
// trust the server.
import { accepted } from '#shared/clients/kube/wire.ts';
import { faultOf } from '#shared/clients/kube/wire.ts';
import type { Transport, TransportAnswer, TransportRequest } from '#shared/clients/kube/wire.ts';
import { currentContext } from '#shared/runtime/context.ts';
import { Unavailable, messageOf } from '#shared/runtime/errors.ts';
import { traceHeaders } from '#shared/runtime/trace.ts';

/** Milliseconds to wait for the answer of a request that is not a watch. */
const requestTimeoutMs = 30_000;

export interface FetchAccess {
  /** URL of the API server. */
  readonly server: string;
  /** Of the service account to work under. */
  readonly token: string;
  /** Default: the runtime's own. */
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
      // The token is for this server alone.
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
