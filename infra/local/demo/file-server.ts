// Serves files over HTTP with ranges, like a mirror. Called by the demo and by flow tests.
import { createReadStream, existsSync } from 'node:fs';
import { stat } from 'node:fs/promises';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { basename, join, resolve } from 'node:path';
import { Transform } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { bootLine, writeBootDisk } from './boot-disk.ts';
import { run } from './prove.ts';
import { InvalidInput } from '#shared/runtime/errors.ts';
import { listen } from '#shared/runtime/connections.ts';

interface FileServerOptions {
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
  const url = `http://${host}:${await listen(server, { port: 0, host })}`;
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

// The source of the demo's image: a generated disk, a file, or an address.

const mib = 2 ** 20;

export interface DemoSource {
  readonly url: string;
  /** The published file on this machine; undefined for an address. */
  readonly file?: string;
  /** The expected output on the serial port, if known. */
  readonly says?: string;
  /** Description in one line. */
  readonly about: string;
}

/** Throws InvalidInput if the argument is neither an address nor a file. */
export const prepareSource = async (
  argument: string | undefined,
  server: FileServer,
  dir: string,
): Promise<DemoSource> => {
  if (argument === undefined) return makeDisk(server, dir);
  if (/^https?:\/\//i.test(argument)) return { url: argument, about: argument };
  const file = resolve(argument);
  if (!existsSync(file) || !(await stat(file)).isFile())
    throw new InvalidInput(`${argument} is neither a http(s) address nor a file`);
  return { url: server.offer(basename(file), file), file, about: `file ${file}` };
};

const makeDisk = async (server: FileServer, dir: string): Promise<DemoSource> => {
  const raw = join(dir, 'demo.raw');
  const file = join(dir, 'demo.qcow2');
  await writeBootDisk(raw, { bytes: 256 * mib, dataBytes: 64 * mib });
  await run('qemu-img', ['convert', '-f', 'raw', '-O', 'qcow2', raw, file]);
  return {
    url: server.offer('demo.qcow2', file),
    file,
    says: bootLine,
    about: 'a generated bootable disk of 256 MiB',
  };
};
