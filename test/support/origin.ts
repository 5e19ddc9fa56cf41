// An HTTP server with all failures of real ones: the origin of images in tests.
import { once } from 'node:events';
import { type IncomingMessage, type Server, type ServerResponse, createServer } from 'node:http';
import { createServer as createTlsServer } from 'node:https';
import type { AddressInfo } from 'node:net';

/** The answer to one request. */
export interface Answer {
  readonly status?: number;
  readonly headers?: Readonly<Record<string, string | number>>;
  readonly body?: Buffer;
  /** The connection is reset after this many bytes of the body. */
  readonly cutAfter?: number;
  /** Nothing more is sent after this many bytes of the body; the connection stays open. */
  readonly stallAfter?: number;
  /** The body is not sent before this. */
  readonly after?: Promise<unknown> | undefined;
  /** Milliseconds before each 64 KiB. */
  readonly pace?: number;
}

export interface OriginRequest {
  readonly method: string;
  readonly path: string;
  readonly headers: IncomingMessage['headers'];
  /** 0 for the first request to this origin. */
  readonly index: number;
}

export interface Origin {
  readonly url: string;
  readonly port: number;
  readonly requests: OriginRequest[];
  /** Bytes of bodies passed to the socket. */
  sentBytes(): number;
  close(): Promise<void>;
}

const pieceBytes = 64 * 1024;

const sendBody = async (response: ServerResponse, answer: Answer, count: (bytes: number) => void): Promise<void> => {
  const closed = once(response, 'close');
  const body = answer.body ?? Buffer.alloc(0);
  await answer.after;
  const end = Math.min(body.length, answer.cutAfter ?? Infinity, answer.stallAfter ?? Infinity);
  for (let at = 0; at < end; at += pieceBytes) {
    if (answer.pace !== undefined) await new Promise((resolve) => setTimeout(resolve, answer.pace));
    if (response.destroyed) return;
    const piece = body.subarray(at, Math.min(end, at + pieceBytes));
    count(piece.length);
    if (!response.write(piece)) {
      await Promise.race([once(response, 'drain'), closed]);
    }
  }
  if (answer.cutAfter !== undefined) setTimeout(() => response.destroy(), 20);
  else if (answer.stallAfter === undefined) response.end();
};

/**
 * Listens on a free port of 127.0.0.1. `respond` may have state: it is called once per request, in order of arrival. `tls`: as PEM, for
 * localhost.
 */
export const startOrigin = async (
  respond: (request: OriginRequest) => Answer,
  tls?: { readonly certificate: string; readonly key: string },
): Promise<Origin> => {
  const requests: OriginRequest[] = [];
  let sent = 0;
  const listener = (incoming: IncomingMessage, response: ServerResponse): void => {
    const { url: path = '/', method = 'GET', headers } = incoming;
    const request = { method, path, headers, index: requests.length };
    requests.push(request);
    const answer = respond(request);
    response.writeHead(answer.status ?? 200, answer.headers ?? {});
    response.on('error', () => {});
    void sendBody(response, method === 'HEAD' ? { ...answer, body: Buffer.alloc(0) } : answer, (bytes) => {
      sent += bytes;
    });
  };
  const server: Server =
    tls === undefined ? createServer(listener) : createTlsServer({ cert: tls.certificate, key: tls.key }, listener);
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  return {
    url: tls === undefined ? `http://127.0.0.1:${port}` : `https://localhost:${port}`,
    port,
    requests,
    sentBytes: () => sent,
    close: async () => {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
};

export interface FileOptions {
  readonly ranges?: boolean;
  /** As in the header, including quotes; `null` sends none. */
  readonly etag?: string | null;
  readonly headers?: Readonly<Record<string, string>>;
  /** Omits Content-Length. */
  readonly chunked?: boolean;
}

const parseRange = (range: string | undefined, size: number): { first: number; last: number } | undefined => {
  const match = /^bytes=(\d+)-(\d*)$/.exec(range ?? '');
  if (match === null) return undefined;
  return { first: Number(match[1]), last: Math.min(size - 1, match[2] === '' ? size - 1 : Number(match[2])) };
};

/** The answer of a correct server for one file: ranges, If-Range, 416. Tests modify the result. */
export const fileAnswer = (request: OriginRequest, bytes: Buffer, options: FileOptions = {}): Answer => {
  const { ranges = true, etag = '"v1"' } = options;
  const common = { ...(etag === null ? {} : { etag }), ...options.headers };
  const range = ranges ? parseRange(request.headers.range, bytes.length) : undefined;
  const condition = request.headers['if-range'];
  if (range === undefined || (condition !== undefined && condition !== etag)) {
    return {
      headers: { ...common, ...(options.chunked === true ? {} : { 'content-length': bytes.length }) },
      body: bytes,
    };
  }
  if (range.first >= bytes.length)
    return { status: 416, headers: { ...common, 'content-range': `bytes */${bytes.length}` } };
  const body = bytes.subarray(range.first, range.last + 1);
  const contentRange = `bytes ${range.first}-${range.last}/${bytes.length}`;
  return { status: 206, headers: { ...common, 'content-range': contentRange, 'content-length': body.length }, body };
};
