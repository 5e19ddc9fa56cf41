// Archives and registries that are made to use up memory: the Job stays within the limit of its pod, or refuses what it is sent.
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { type ServerResponse, createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { gzipSync } from 'node:zlib';
import { describe, expect, it } from 'vitest';
import type { TransferSource, TransferTarget } from '#shared/transfer/spec.ts';
import { withMendedSums } from '#test/support/damage.ts';
import { temporaryDirectory } from '#test/support/directory.ts';
import { noise } from '#test/support/disk.ts';
import { podBytes, runImport } from '#test/support/job-memory.ts';
import { drawn } from '#test/support/random.ts';
import { tarOf } from '#test/support/registry/images.ts';

const root = temporaryDirectory();
const [mib, tib] = [1024 ** 2, 1024 ** 4];
/** Bytes of two empty blocks at the end of an archive. */
const endBytes = 1024;

/** What a server sends, made while it is sent. */
type Pieces = () => Iterable<Buffer>;
type Answer = (response: ServerResponse) => unknown;

const send = (pieces: Pieces, type: string): Answer => {
  return (response) => {
    response.writeHead(200, { 'content-type': type });
    return pipeline(Readable.from(pieces(), { objectMode: false }), response).catch(() => {});
  };
};

/** Each byte is a chunk of its own on the wire. */
const sendSlowly = (bytes: number, type: string): Answer => {
  return async ({ socket }) => {
    const chunks = Buffer.from('1\r\n \r\n'.repeat(10_000));
    socket?.on('error', () => {});
    socket?.write(`HTTP/1.1 200 OK\r\ncontent-type: ${type}\r\ntransfer-encoding: chunked\r\n\r\n`);
    for (let sent = 0; sent < bytes && socket?.destroyed === false; sent += 10_000)
      if (!socket.write(chunks)) await once(socket, 'drain').catch(() => {});
    socket?.end('0\r\n\r\n');
  };
};

function* repeated(piece: Buffer, count: number, ...end: readonly Buffer[]): Generator<Buffer> {
  for (let index = 0; index < count; index += 1) yield piece;
  yield* end;
}

const serve = async (answers: ReadonlyMap<string, Answer>) => {
  const server = createServer((request, response) => {
    const answer = answers.get(request.url?.split('/').at(-1) ?? '');
    if (answer === undefined) response.writeHead(request.url === '/v2/' ? 200 : 404).end();
    else void answer(response);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const close = (): void => server.close().closeAllConnections();
  return { host: `127.0.0.1:${(server.address() as AddressInfo).port}`, close };
};

const run = async (
  answers: ReadonlyMap<string, Answer>,
  sourceAt: (host: string) => TransferSource,
  target: Pick<TransferTarget, 'capacityBytes' | 'content'>,
) => {
  const { host, close } = await serve(answers);
  try {
    return await runImport(root, sourceAt(host), target);
  } finally {
    close();
  }
};

/** An entry without the end of the archive. `size`: what its header says, whatever follows. */
const entry = (name: string, type: string, content: Buffer, size?: number): Buffer => {
  const archive = tarOf([{ name, content, type }]).subarray(0, -endBytes);
  if (size === undefined) return archive;
  // Large numbers are binary.
  const copy = Buffer.from(archive);
  copy.fill(0, 124, 136);
  copy[124] = 0x80;
  copy.writeBigUInt64BE(BigInt(size), 128);
  return withMendedSums(copy);
};
/** One that gives the next one its name. */
const named = (path: string): Buffer => {
  const length = path.length + ' path=\n'.length;
  const digits = String(length + String(length + 8).length);
  return entry('x', 'x', Buffer.from(`${digits} path=${path}\n`));
};
const comment = (bytes: number): Buffer => {
  const text = ` comment=${'c'.repeat(bytes)}\n`;
  return entry('g', 'g', Buffer.from(`${text.length + String(text.length + 8).length}${text}`));
};
const hello = entry('hello', '0', Buffer.from('hello'));
const end = Buffer.alloc(endBytes);

describe('the memory of an import of files', () => {
  const archives: readonly (readonly [what: string, pieces: Pieces, ends: RegExp])[] = [
    [
      'attributes that say they have a tebibyte',
      () => [entry('x', 'x', Buffer.alloc(0), tib), ...repeated(Buffer.alloc(mib, 'x'), 4096)],
      /attributes of an impossible size/,
    ],
    ['a mebibyte of attributes, 200 times', () => repeated(comment(mib - 100), 200, hello, end), /^succeeded$/],
    [
      'a folder in a folder, 500,000 deep',
      () => [named('n/'.repeat(500_000)), entry('d', '5', Buffer.alloc(0)), end],
      /ENAMETOOLONG/,
    ],
  ];
  it.each(drawn(archives, 1 / 2))(
    'from an archive with %s stays within the limit of its pod',
    { timeout: 120_000 },
    async (what, pieces, ends) => {
      const answers = new Map([['file.tar', send(pieces, 'application/x-tar')]]);
      const { peak, outcome } = await run(answers, (host) => ({ type: 'http', url: `http://${host}/file.tar` }), {
        capacityBytes: 64 * mib,
        content: 'archive',
      });
      console.info(`archive with ${what}: ${Math.round(peak / mib)} MiB, ${outcome}`);
      expect(outcome).toMatch(ends);
      expect(peak).toBeLessThan(podBytes);
    },
  );
});

const ociManifest = 'application/vnd.oci.image.manifest.v1+json';
const ociIndex = 'application/vnd.oci.image.index.v1+json';

const imageAt = (host: string): TransferSource => ({
  type: 'registry',
  url: `docker://${host}/x:latest`,
  plainHttp: true,
});

/** An image of one layer. */
const imageOf = (pieces: Pieces): ReadonlyMap<string, Answer> => {
  const hash = createHash('sha256');
  let size = 0;
  for (const piece of pieces()) {
    hash.update(piece);
    size += piece.length;
  }
  const layer = { mediaType: 'application/vnd.oci.image.layer.v1.tar', digest: `sha256:${hash.digest('hex')}`, size };
  const config = { mediaType: 'application/vnd.oci.image.config.v1+json', digest: `sha256:${'0'.repeat(64)}`, size: 2 };
  const manifest = { schemaVersion: 2, mediaType: ociManifest, config, layers: [layer] };
  return new Map([
    ['latest', send(() => [Buffer.from(JSON.stringify(manifest))], ociManifest)],
    [layer.digest, send(pieces, 'application/octet-stream')],
  ]);
};

const disk = noise('disk', mib);
const aDisk = entry('disk/disk.img', '0', disk);
const most = 'is larger than 4194304 bytes';

describe('the memory of an import from a registry', () => {
  type Row = readonly [what: string, answers: () => ReadonlyMap<string, Answer>, ends: RegExp];
  const registries: readonly Row[] = [
    [
      'a manifest without an end',
      () => new Map([['latest', send(() => repeated(Buffer.alloc(mib, ' '), 4096), ociManifest)]]),
      new RegExp(most),
    ],
    [
      'a manifest in chunks of a byte, without an end',
      () => new Map([['latest', sendSlowly(5 * mib, ociManifest)]]),
      new RegExp(most),
    ],
    [
      'an index of a million entries that are none',
      () => new Map([['latest', send(() => [Buffer.from(`{"manifests":[${'0,'.repeat(2 * mib - 20)}0]}`)], ociIndex)]]),
      /is neither an image nor an index|has no image/,
    ],
    [
      'a manifest that is nested a million deep',
      () =>
        new Map([
          [
            'latest',
            send(() => [Buffer.from(`{"layers":${'['.repeat(2 * mib - 20)}${']'.repeat(2 * mib - 20)}}`)], ociManifest),
          ],
        ]),
      /is not JSON|is neither an image nor an index/,
    ],
    [
      'a layer of 100,000 files before its disk',
      () => imageOf(() => repeated(entry('etc/motd', '0', Buffer.alloc(0)), 100_000, aDisk, end)),
      /^succeeded$/,
    ],
    [
      'a layer whose disk says it has a million tebibytes',
      () => imageOf(() => [entry('disk/disk.img', '0', disk, 2 ** 60), end]),
      /impossible size/,
    ],
    [
      'a layer whose disk says it has a thousand tebibytes',
      () => imageOf(() => [entry('disk/disk.img', '0', disk, 1000 * tib), end]),
      /1099511627776000 bytes/,
    ],
    [
      'a layer that removes files with names of a mebibyte',
      () => {
        const removes = Buffer.concat([
          named(`disk/.wh.${'n'.repeat(mib - 100)}`),
          entry('disk/.wh.n', '0', Buffer.alloc(0)),
        ]);
        return imageOf(() => repeated(gzipSync(removes), 600, gzipSync(end)));
      },
      /removes too many files/,
    ],
    [
      'a layer that removes files without an end',
      () =>
        imageOf(function* pieces() {
          for (let index = 0; index < 10_000; index += 1)
            yield entry(`disk/.wh.${String(index).padEnd(80, 'n')}`, '0', Buffer.alloc(0));
          yield end;
        }),
      /removes too many files/,
    ],
  ];
  it.each(drawn(registries, 1 / 2))(
    'with %s stays within the limit of its pod',
    { timeout: 120_000 },
    async (what, answers, ends) => {
      const { peak, outcome } = await run(answers(), imageAt, { capacityBytes: 64 * mib });
      console.info(`registry, ${what}: ${Math.round(peak / mib)} MiB, ${outcome}`);
      expect(outcome).toMatch(ends);
      expect(peak).toBeLessThan(podBytes);
    },
  );
});
