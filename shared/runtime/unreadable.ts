// The answer to what Node cannot read as HTTP. Called by serve.ts.
import type { Socket } from 'node:net';
import { statusBody } from '#shared/runtime/status-body.ts';

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
export const refuseUnreadable = (error: Error & { readonly code?: string }, socket: Socket): void => {
  if (!socket.writable || socket.bytesWritten > 0) {
    socket.destroy();
    return;
  }
  const [code, reason, message] = answers[error.code ?? ''] ?? [400, 'BadRequest', 'the request is no HTTP/1.1'];
  const body = statusBody(code, reason, message);
  const head = [
    `HTTP/1.1 ${code} ${reason}`,
    'content-type: application/json',
    'access-control-allow-origin: *',
    'connection: close',
    `content-length: ${Buffer.byteLength(body)}`,
  ];
  socket.end(`${head.join('\r\n')}\r\n\r\n${body}`);
};
