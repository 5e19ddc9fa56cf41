// What a server does about connections that lead to no request: it answers what Node cannot read as HTTP, and closes what it has ended also where
// the client does not. Called by every server of ours.
import type { Server, Socket } from 'node:net';
import { statusBody } from '#shared/runtime/errors.ts';
import type { IncomingMessage, ServerResponse } from 'node:http';

/** Milliseconds for a client to read the last answer and close; then a descriptor is not held for it any longer. */
const lingerMs = 3_000;

/** Milliseconds for a TLS handshake: Node's own limit is two minutes. */
export const handshakeTimeoutMs = 10_000;

/** By the code of Node's error. */
const answers: Readonly<Record<string, readonly [code: number, reason: string, message: string]>> = {
  HPE_HEADER_OVERFLOW: [
    431,
    'RequestHeaderFieldsTooLarge',
    'the headers are larger than 16 KiB: send a shorter token or fewer cookies',
  ],
  ERR_HTTP_REQUEST_TIMEOUT: [408, 'RequestTimeout', 'the request did not arrive in time: send it again'],
};

/** What Node cannot read as HTTP gets its answer here: people are told what to do about headers that are too large. */
const refuseUnreadable = (error: Error & { readonly code?: string }, socket: Socket): void => {
  // Before the end of a handshake there is nobody to answer.
  const isHttp = error.code?.startsWith('HPE_') === true || error.code === 'ERR_HTTP_REQUEST_TIMEOUT';
  if (!isHttp || !socket.writable || socket.bytesWritten > 0) {
    socket.destroy();
    return;
  }
  const [code, reason, message] = answers[error.code ?? ''] ?? [400, 'BadRequest', 'the request is not valid HTTP/1.1'];
  const body = statusBody(code, reason, message);
  const head = [
    `HTTP/1.1 ${code} ${reason}`,
    'content-type: application/json',
    'access-control-allow-origin: *',
    'connection: close',
    `content-length: ${Buffer.byteLength(body)}`,
  ];
  endSoon(socket, `${head.join('\r\n')}\r\n\r\n${body}`);
};

/** Says the last that there is to say and closes the connection, whether the client reads it and closes its side or not. */
export const endSoon = (socket: Socket, last?: string): void => {
  const timer = setTimeout(() => socket.destroy(), lingerMs);
  timer.unref();
  socket.once('close', () => clearTimeout(timer));
  if (last === undefined) socket.end();
  else socket.end(last);
  // What a client goes on to send keeps its end from being observed.
  socket.resume();
};

/** Call before the server listens. Take `handshakeTimeoutMs` where it speaks TLS. */
export const boundConnections = (server: Server): void => void server.on('clientError', refuseUnreadable);

// What becomes of a body that was answered before its end: a connection that is closed at once takes the answer with it, since the bytes
// that are still arriving make the client's system drop what it has not read yet (RFC 9112, 9.6).

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
export const closeOnceRead = (request: IncomingMessage, response: ServerResponse): void => {
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
