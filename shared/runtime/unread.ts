// What becomes of a body that was answered before its end: a connection that is closed at once takes the answer with it, since the bytes that are
// still arriving make the client's system drop what it has not read yet (RFC 9112, 9.6). Called by everything that may answer early.
import { endSoon } from '#shared/runtime/connections.ts';
import type { IncomingMessage, ServerResponse } from 'node:http';

/** Milliseconds for a client to hear that no more of its body is wanted: busy ones look seconds late. */
const hearingMs = 10_000;

/** Reads the rest and drops it; cuts the connection of a client that does not stop. Whoever has read until now gets no more. */
export const dropUnread = (request: IncomingMessage): void => {
  if (request.complete || request.destroyed) return;
  // One of either kind, left behind by whoever stopped in the middle, would hold the bytes back.
  request.removeAllListeners('data').removeAllListeners('readable');
  request.resume();
  const timer = setTimeout(() => request.destroy(), hearingMs);
  timer.unref();
  const settled = (): void => clearTimeout(timer);
  request.once('end', settled).once('close', settled);
};

/**
 * Call when a request arrives. A connection that its client wants closed behind the answer, as proxies do of every one, is closed by Node with the
 * last byte of that, whatever is still arriving: it is kept until the client has heard the answer, and closed then.
 */
export const closeOnceHeard = (request: IncomingMessage, response: ServerResponse): void => {
  if (response.shouldKeepAlive) return;
  const writeHead = response.writeHead.bind(response) as (...all: readonly unknown[]) => ServerResponse;
  response.writeHead = (...all: readonly unknown[]) => {
    if (!request.complete && !request.destroyed) {
      response.shouldKeepAlive = true;
      request.once('end', () => endSoon(request.socket));
    }
    return writeHead(...all);
  };
};
