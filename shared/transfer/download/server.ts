// Serves a volume as files over HTTP, in the pod that has mounted it. Its only client is the transfer function.
//
//   GET, HEAD /file?format=qcow2&compression=zlib    200, 206, 304, 412, 416; 503: too many at once
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { messageOf } from '#shared/runtime/errors.ts';
import type { Shelf } from './shelf.ts';
import type { ExportFile } from '#shared/transfer/export/file.ts';
import { ExportFormat } from '#shared/transfer/export/format.ts';
import { isTransferError } from '#shared/transfer/fault.ts';
import { mayWork, type TokenChecker } from '#shared/transfer/upload/keys.ts';
import { listen } from '#shared/runtime/connections.ts';

// The answer to a request for a file (RFC 9110: ranges and conditions), before any of it is read. Pure.

export interface FileRequest {
  readonly range?: string | undefined;
  readonly ifRange?: string | undefined;
  readonly ifMatch?: string | undefined;
  readonly ifNoneMatch?: string | undefined;
}

interface FileAnswer {
  readonly status: 200 | 206 | 304 | 412 | 416;
  readonly headers: Readonly<Record<string, string>>;
  /** Bytes to send, both ends inclusive. Default: none, or the whole file if its size is unknown. */
  readonly range?: { readonly first: number; readonly last: number } | undefined;
}

type Facts = Pick<ExportFile, 'size' | 'hasRanges' | 'etag' | 'contentType'>;

const lists = (header: string, etag: string): boolean =>
  header.trim() === '*' || header.split(',').some((one) => one.trim().replace(/^W\//, '') === etag);

/** `undefined`: the whole file, also for an invalid range and for several ranges, as RFC 9110 permits. `none`: the range is outside of the file. */
export const parseRange = (header: string, size: number): { first: number; last: number } | 'none' | undefined => {
  const [, from = '', to = ''] = /^bytes=(\d*)-(\d*)$/.exec(header.replaceAll(' ', '')) ?? [];
  if (from === '' && to === '') return undefined;
  if (from === '') {
    const length = Math.min(Number(to), size);
    return length === 0 ? 'none' : { first: size - length, last: size - 1 };
  }
  const first = Number(from);
  const last = to === '' ? size - 1 : Math.min(Number(to), size - 1);
  if (to !== '' && Number(to) < first) return undefined;
  return first >= size ? 'none' : { first, last };
};

const headersOf = ({ etag, contentType, hasRanges }: Facts): Record<string, string> => ({
  etag,
  'content-type': contentType,
  'accept-ranges': hasRanges ? 'bytes' : 'none',
});

const whole = (file: Facts): FileAnswer => {
  const { size } = file;
  if (size === undefined) return { status: 200, headers: headersOf(file) };
  const headers = { ...headersOf(file), 'content-length': String(size) };
  return { status: 200, headers, range: { first: 0, last: size - 1 } };
};

/** The first condition that fails decides. */
export const answerFor = (file: Facts, asked: FileRequest): FileAnswer => {
  const { etag, size } = file;
  if (asked.ifMatch !== undefined && !lists(asked.ifMatch, etag)) return { status: 412, headers: { etag } };
  if (asked.ifNoneMatch !== undefined && lists(asked.ifNoneMatch, etag)) return { status: 304, headers: { etag } };
  // A download resumes only if the file is the same.
  const mayResume = asked.ifRange === undefined || asked.ifRange.trim() === etag;
  if (asked.range === undefined || size === undefined || !mayResume) return whole(file);
  const range = parseRange(asked.range, size);
  if (range === undefined) return whole(file);
  if (range === 'none') return { status: 416, headers: { ...headersOf(file), 'content-range': `bytes */${size}` } };
  const headers = {
    ...headersOf(file),
    'content-length': String(range.last - range.first + 1),
    'content-range': `bytes ${range.first}-${range.last}/${size}`,
  };
  return { status: 206, headers, range };
};

interface DownloadServerOptions {
  readonly shelf: Shelf;
  readonly host: string;
  readonly port: number;
  readonly checker: TokenChecker;
  /** UID that tokens must contain. */
  readonly subject: string;
  readonly log: (message: string, facts: Readonly<Record<string, unknown>>) => void;
}

export interface DownloadServer {
  readonly port: number;
  /** Number of requests in progress. */
  readonly active: () => number;
  /** Total number of requests. */
  readonly count: () => number;
  close(): Promise<void>;
}

/** Milliseconds for which a client may read nothing; after that it must reconnect and resume. */
const stallMs = 300_000;

const sendError = (response: ServerResponse, status: number, reason: string, message: string): void => {
  response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify({ reason, message }));
};

const formOf = (url: URL): ExportFormat | undefined => {
  const { format, compression, level } = Object.fromEntries(url.searchParams);
  const asked = { format, ...(compression === undefined ? {} : { compression }) };
  return ExportFormat.safeParse(level === undefined ? asked : { ...asked, level: Number(level) }).data;
};

const sendFile = async (file: ExportFile, answer: FileAnswer, response: ServerResponse): Promise<void> => {
  const hasBody = answer.status === 200 || answer.status === 206;
  response.writeHead(answer.status, { ...answer.headers, 'x-file-extension': file.extension });
  if (!hasBody || response.req.method === 'HEAD') {
    response.end();
    return;
  }
  response.setTimeout(stallMs, () => response.destroy());
  // An error closes the connection, so that the client recognizes an incomplete file.
  await pipeline(Readable.from(file.read(answer.range), { objectMode: false, highWaterMark: 1024 * 1024 }), response);
};

const respond = async (request: IncomingMessage, response: ServerResponse, options: DownloadServerOptions) => {
  const url = new URL(request.url ?? '/', 'http://pod');
  if (url.pathname !== '/file') return sendError(response, 404, 'NotFound', 'no such path');
  if (!(await mayWork(request, options))) return sendError(response, 401, 'Unauthorized', 'no token');
  if (request.method !== 'GET' && request.method !== 'HEAD')
    return sendError(response, 405, 'MethodNotAllowed', 'GET it');
  const form = formOf(url);
  if (form === undefined) return sendError(response, 400, 'BadRequest', 'there is no such format');
  const file = await options.shelf.take(form);
  if (file === undefined)
    return sendError(response, 503, 'Busy', 'too many downloads of this volume at once: try again');
  // The client disconnected meanwhile: the file is available for the next one.
  if (response.destroyed) return options.shelf.putBack(form, file);
  try {
    const read = (name: string): string | undefined => {
      const value = request.headers[name];
      return typeof value === 'string' ? value : undefined;
    };
    const [range, ifRange] = [read('range'), read('if-range')];
    const conditions = { range, ifRange, ifMatch: read('if-match'), ifNoneMatch: read('if-none-match') };
    await sendFile(file, answerFor(file, conditions), response);
    options.shelf.putBack(form, file);
  } catch (error) {
    await options.shelf.discard(file);
    throw error;
  }
};

const fail = (error: unknown, response: ServerResponse, { log }: DownloadServerOptions): void => {
  if (response.headersSent || response.destroyed) {
    log('a download ended early', { error: messageOf(error) });
    response.destroy();
    return;
  }
  log('a download request failed', { error: messageOf(error) });
  const reason = isTransferError(error) ? error.code : 'InternalFault';
  sendError(response, isTransferError(error) && !error.retryable ? 422 : 503, reason, messageOf(error));
};

export const startDownloadServer = async (options: DownloadServerOptions): Promise<DownloadServer> => {
  let [active, count] = [0, 0];
  const server = createServer({ requestTimeout: 0 }, (request, response) => {
    active += 1;
    count += 1;
    void respond(request, response, options)
      .catch((error: unknown) => fail(error, response, options))
      .finally(() => (active -= 1));
  });
  const port = await listen(server, options);
  return {
    port,
    active: () => active,
    count: () => count,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
};
