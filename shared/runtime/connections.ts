// Connections that lead to no request: the server answers what Node cannot parse as HTTP, and closes connections it has ended even if the
// client does not. Called by every server of Bullion.
import type { AddressInfo, Server, Socket } from 'node:net';
import { statusBody } from '#shared/runtime/errors.ts';
import type { IncomingMessage, ServerResponse } from 'node:http';

/** Milliseconds for a client to read the last answer and to close; then the connection is destroyed, to free its descriptor. */
const lingerMs = 3_000;

/** Milliseconds for a TLS handshake: Node's own limit is two minutes. */
export const handshakeTimeoutMs = 10_000;

/** Answers by the error code of Node. */
const answers: Readonly<Record<string, readonly [code: number, reason: string, message: string]>> = {
  HPE_HEADER_OVERFLOW: [
    431,
    'RequestHeaderFieldsTooLarge',
    'the headers are larger than 16 KiB: send a shorter token or fewer cookies',
  ],
  ERR_HTTP_REQUEST_TIMEOUT: [408, 'RequestTimeout', 'the request did not arrive in time: send it again'],
};

/** Answers what Node cannot parse as HTTP, for example with advice about headers that are too large. */
const refuseUnreadable = (error: Error & { readonly code?: string }, socket: Socket): void => {
  // Nothing can be answered before the TLS handshake is complete.
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

/** Sends the last answer and closes the connection, even if the client neither reads it nor closes its side. */
export const endSoon = (socket: Socket, last?: string): void => {
  const timer = setTimeout(() => socket.destroy(), lingerMs);
  timer.unref();
  socket.once('close', () => clearTimeout(timer));
  if (last === undefined) socket.end();
  else socket.end(last);
  // Unread bytes of the client would hide the end of the connection.
  socket.resume();
};

/** Call before the server listens. A TLS server also sets `handshakeTimeoutMs`. */
export const boundConnections = (server: Server): void => void server.on('clientError', refuseUnreadable);

/** Returns the port. Rejects if the address is in use. */
export const listen = async (server: Server, { port, host }: { port: number; host?: string | undefined }) => {
  boundConnections(server);
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject);
    server.listen(port, host, resolve);
  });
  return (server.address() as AddressInfo).port;
};

// The rest of a body that was answered before its end. If the server closes the connection at once, the bytes that still arrive make the
// client's system discard the answer before it is read (RFC 9112, 9.6).

/** Milliseconds for a client to stop sending its body after the answer; a busy client reads it seconds late. */
const unreadTimeoutMs = 10_000;

/**
 * Reads and discards the rest of the body; destroys the connection of a client that does not stop sending. Earlier readers of the body receive
 * nothing more. Once the body has arrived the connection is left alone, though its end may never be read: by then it serves the next request.
 */
export const dropUnread = (request: IncomingMessage, timeoutMs: number = unreadTimeoutMs): void => {
  if (request.complete || request.destroyed) return;
  // A listener left behind by an interrupted reader would block the stream.
  request.removeAllListeners('data').removeAllListeners('readable');
  request.resume();
  const timer = setTimeout(() => {
    if (!request.complete) request.destroy();
  }, timeoutMs);
  timer.unref();
  const settled = (): void => clearTimeout(timer);
  request.once('end', settled).once('close', settled);
};

/**
 * Call when a request arrives. If the client asked to close the connection after the answer, as proxies do for every request, Node closes it
 * with the last byte of the answer, even while the body is still arriving. It is kept open until the body ends instead, and closed then.
 */
export const closeOnceRead = (request: IncomingMessage, response: ServerResponse): void => {
  const writeHead = response.writeHead.bind(response) as (...all: readonly unknown[]) => ServerResponse;
  response.writeHead = (...all: readonly unknown[]) => {
    // Only now: a server that is being closed decides late that it keeps no connection.
    if (!response.shouldKeepAlive && !request.complete && !request.destroyed) {
      response.shouldKeepAlive = true;
      request.once('end', () => endSoon(request.socket));
    }
    return writeHead(...all);
  };
};
