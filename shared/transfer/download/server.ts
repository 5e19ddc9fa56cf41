// Serves a volume as files over HTTP, in the pod that has mounted it. Its only client is the transfer function.
//
//   GET, HEAD /file?format=qcow2&compression=zlib    200, 206, 304, 412, 416; 503: too many at once
import { type IncomingMessage, type ServerResponse, createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { messageOf } from '#shared/runtime/errors.ts';
import { type FileAnswer, answerFor } from '#shared/transfer/download/answer.ts';
import type { Shelf } from '#shared/transfer/download/shelf.ts';
import { ExportFormat } from '#shared/transfer/export/format.ts';
import type { ExportFile } from '#shared/transfer/export/file.ts';
import { isTransferError } from '#shared/transfer/fault.ts';
import { type TokenChecker, mayWork } from '#shared/transfer/upload/keys.ts';
import { boundConnections } from '#shared/runtime/connections.ts';

export interface DownloadServerOptions {
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
  boundConnections(server);
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject);
    server.listen(options.port, options.host, resolve);
  });
  return {
    port: (server.address() as AddressInfo).port,
    active: () => active,
    count: () => count,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
};
