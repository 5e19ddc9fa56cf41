// Serves files over HTTP with ranges, like a mirror. Called by the demo and by flow tests.
import { createReadStream } from 'node:fs';
import { stat } from 'node:fs/promises';
import { type IncomingMessage, type ServerResponse, createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { Transform } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { boundConnections } from '#shared/runtime/connections.ts';

export interface FileServerOptions {
  /** Bytes per second of one answer. Default: no limit. */
  readonly bytesPerSecond?: number;
  /** Default: 127.0.0.1. */
  readonly host?: string;
}

export interface FileServer {
  /** `http://<host>:<port>`, without a trailing slash. */
  readonly url: string;
  /** Serves a file at `/<name>`; returns its URL. */
  readonly offer: (name: string, path: string) => string;
  readonly close: () => Promise<void>;
}

export const startFileServer = async (options: FileServerOptions = {}): Promise<FileServer> => {
  const { host = '127.0.0.1' } = options;
  const files = new Map<string, string>();
  const server = createServer((request, response) => {
    answer(files, request, response, options).catch(() => response.destroy());
  });
  boundConnections(server);
  await new Promise<void>((resolve) => server.listen(0, host, resolve));
  const url = `http://${host}:${(server.address() as AddressInfo).port}`;
  return {
    url,
    offer: (name, path) => {
      files.set(`/${encodeURIComponent(name)}`, path);
      return `${url}/${encodeURIComponent(name)}`;
    },
    close: async () => {
      server.closeAllConnections();
      await new Promise<void>((resolve) => server.close(() => resolve()));
    },
  };
};

const answer = async (
  files: ReadonlyMap<string, string>,
  request: IncomingMessage,
  response: ServerResponse,
  { bytesPerSecond }: FileServerOptions,
): Promise<void> => {
  const path = files.get(new URL(request.url ?? '/', 'http://localhost').pathname);
  if (path === undefined) {
    response.writeHead(404, { 'content-type': 'text/plain' }).end('not found\n');
    return;
  }
  const { size, mtime, mtimeMs } = await stat(path);
  const etag = `"${size.toString(16)}-${Math.trunc(mtimeMs).toString(16)}"`;
  const common = {
    'accept-ranges': 'bytes',
    etag,
    'last-modified': mtime.toUTCString(),
    'content-type': 'application/octet-stream',
  };
  const condition = request.headers['if-range'];
  const isSame = condition === undefined || condition === etag;
  const range = isSame ? parseRange(request.headers.range, size) : undefined;
  if (range === 'unsatisfiable') {
    response.writeHead(416, { ...common, 'content-range': `bytes */${size}` }).end();
    return;
  }
  const { start, end } = range ?? { start: 0, end: size - 1 };
  const partial = range === undefined ? {} : { 'content-range': `bytes ${start}-${end}/${size}` };
  response.writeHead(range === undefined ? 200 : 206, { ...common, ...partial, 'content-length': end - start + 1 });
  if (request.method === 'HEAD' || size === 0) {
    response.end();
    return;
  }
  await pipeline(createReadStream(path, { start, end }), throttle(bytesPerSecond), response);
};

interface ByteRange {
  readonly start: number;
  /** The last byte, inclusive. */
  readonly end: number;
}

/** One range of bytes; for several, or another unit, the whole file is served. */
export const parseRange = (header: string | undefined, size: number): ByteRange | 'unsatisfiable' | undefined => {
  const match = /^bytes=(\d*)-(\d*)$/.exec(header ?? '');
  if (match === null || (match[1] === '' && match[2] === '')) return undefined;
  const [, first = '', last = ''] = match;
  const start = first === '' ? Math.max(0, size - Number(last)) : Number(first);
  const end = first === '' || last === '' ? size - 1 : Math.min(Number(last), size - 1);
  return start > end ? 'unsatisfiable' : { start, end };
};

const throttle = (bytesPerSecond: number | undefined): Transform => {
  const started = Date.now();
  let sent = 0;
  return new Transform({
    transform: (chunk: Buffer, _, done) => {
      sent += chunk.length;
      const due = bytesPerSecond === undefined ? 0 : started + (sent / bytesPerSecond) * 1000 - Date.now();
      setTimeout(done, Math.max(0, due), null, chunk);
    },
  });
};
