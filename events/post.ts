// One POST of an event over the network, and one to a function in the same process. Called by senders and the broker; `send.ts` uses sockets.
import type { Message } from '#events/event.ts';

export interface Answer {
  readonly status: number;
  readonly headers: Headers;
  readonly body: Uint8Array;
}

/** Sends one message; rejects when there is no answer: connection refused or cut, or signal aborted. Redirects are returned, not followed. */
export type Post = (url: string, message: Message, signal: AbortSignal) => Promise<Answer>;

/** The entry point of a function, like `app.fetch` of Hono. */
export type FetchHandler = (request: Request) => Response | Promise<Response>;

/** Posts to a handler in the same process, or through the `fetch` of the runtime: the contract is the same. */
export const createHandlerPost =
  (handler: FetchHandler): Post =>
  async (url, { headers, body }, signal) => {
    signal.throwIfAborted();
    const bytes = typeof body === 'string' ? body : new Uint8Array(body);
    // A Request adds `text/plain` to a text without a content type, which is optional for an event.
    const sent = new Request(url, { method: 'POST', headers: { ...headers }, body: bytes, signal });
    if (headers['content-type'] === undefined) sent.headers.delete('content-type');
    const response = await unlessAborted(async () => handler(sent), signal);
    return {
      status: response.status,
      headers: response.headers,
      body: new Uint8Array(await response.arrayBuffer()),
    };
  };

const unlessAborted = async <T>(work: () => Promise<T>, signal: AbortSignal): Promise<T> => {
  const { promise, reject } = Promise.withResolvers<never>();
  const abort = () => reject(signal.reason as Error);
  signal.addEventListener('abort', abort, { once: true });
  try {
    return await Promise.race([work(), promise]);
  } finally {
    signal.removeEventListener('abort', abort);
  }
};
