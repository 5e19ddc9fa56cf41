// What an inspection of the beginning of a file finds, on a real server, and what it costs: Longhorn gets no URL of a file that is rejected here.
import { bufferReader } from '#shared/transfer/format/disk.ts';
import { readQcow2Header } from '#shared/transfer/format/qcow2/header.ts';
import { untilTruncated } from '#shared/transfer/format/qcow2/refcounts.ts';
import { isTransferError } from '#shared/transfer/fault.ts';
import { readFileSync, truncateSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import { afterEach, describe, expect, it } from 'vitest';
import { type LookedAtFile, createFileLook } from '#shared/transfer/file-look.ts';
import { temporaryDirectory } from '#test/support/directory.ts';
import { noise } from '#test/support/disk.ts';
import { type Answer, type Origin, type OriginRequest, startOrigin } from '#test/support/origin.ts';
import { hasTools, runTool } from '#test/support/tools.ts';
import { serve } from '#test/support/transfer.ts';

const mib = 2 ** 20;
const here = { allowedAddresses: ['127.0.0.0/8'] };
let origin: Origin | undefined;
afterEach(async () => {
  await origin?.close();
  origin = undefined;
});

const lookAt = async (respond: (request: OriginRequest) => Answer, settings = here): Promise<LookedAtFile> => {
  origin = await startOrigin(respond);
  return createFileLook(() => Promise.resolve(settings))(`${origin.url}/disk?key=secret`);
};

describe('an inspection of a file', () => {
  const raw = noise('disk', 8 * mib);

  it('needs two requests, whatever its length', async () => {
    expect(await lookAt(serve(raw))).toEqual({
      is: 'found',
      inspection: { format: 'raw', compression: 'none', size: 8 * mib, virtualSize: 8 * mib },
    });
    expect(origin?.requests.length).toBeLessThanOrEqual(2);
    expect(origin?.sentBytes()).toBeLessThan(mib);
  });

  it('works without ranges, and then reads no more', async () => {
    expect(await lookAt(serve(raw, { ranges: false }))).toMatchObject({ is: 'found', inspection: { format: 'raw' } });
    expect(origin?.sentBytes()).toBeLessThan(6 * mib);
  });

  it('reports the compression', async () => {
    const packed = await lookAt(serve(gzipSync(raw)));
    expect(packed).toMatchObject({ is: 'found', inspection: { format: 'raw', compression: 'gz' } });
  });

  it.each([
    [404, 'refused', 'SourceNotFound'],
    [403, 'refused', 'SourceForbidden'],
    [503, 'waiting', 'SourceUnavailable'],
    [429, 'waiting', 'SourceUnavailable'],
  ])('answered with %i is %s, and shows no query', async (status, is, reason) => {
    const looked = await lookAt(() => ({ status }));
    expect(looked).toMatchObject({ is, reason });
    expect(JSON.stringify(looked)).not.toContain('secret');
  });

  it('waits when the server is unreachable', async () => {
    const gone = await startOrigin(serve(raw));
    await gone.close();
    const looked = await createFileLook(() => Promise.resolve(here))(gone.url);
    expect(looked).toMatchObject({ is: 'waiting', reason: 'SourceUnreachable' });
  });

  it('connects to no rejected address, and follows no redirect to one', async () => {
    const nowhere = { allowedAddresses: [] };
    expect(await lookAt(serve(raw), nowhere)).toMatchObject({ is: 'refused', reason: 'SourceAddressRefused' });
    expect(origin?.requests).toEqual([]);
    await origin?.close();
    const away = await lookAt(() => ({ status: 302, headers: { location: 'http://169.254.169.254/latest' } }));
    expect(away).toMatchObject({ is: 'refused', reason: 'SourceAddressRefused' });
  });

  it('rejects what is not a disk', async () => {
    const page = await lookAt(serve(Buffer.from('<html>not found</html>'.repeat(100))));
    expect(page).toMatchObject({ is: 'refused', reason: 'NotADiskImage' });
  });
});

describe.skipIf(!hasTools('qemu-img'))('an inspection of a qcow2', () => {
  const dir = temporaryDirectory();
  const disk = join(dir, 'disk.raw');
  writeFileSync(disk, noise('qcow2', 3 * mib));
  truncateSync(disk, 64 * mib);
  const path = join(dir, 'disk.qcow2');
  const convert = (...options: readonly string[]): Buffer => {
    runTool('qemu-img', ['convert', '-f', 'raw', '-O', 'qcow2', ...options, disk, path]);
    return readFileSync(path);
  };
  const create = (...options: readonly string[]): Buffer => {
    runTool('qemu-img', ['create', '-q', '-f', 'qcow2', ...options, path, '64M']);
    return readFileSync(path);
  };
  const kinds: readonly (readonly [string, () => Buffer])[] = [
    ['plain', () => convert()],
    ['compressed', () => convert('-c')],
    ['of version 2', () => convert('-o', 'compat=0.10')],
    ['with small clusters', () => convert('-o', 'cluster_size=512')],
    ['with large clusters', () => convert('-o', 'cluster_size=2M')],
    ['with refcounts of a bit', () => convert('-o', 'refcount_bits=1')],
    ['with refcounts of 64 bits', () => convert('-o', 'refcount_bits=64')],
    ['with room set aside', () => create('-o', 'preallocation=metadata')],
    ['that is empty', () => create()],
    [
      'with a snapshot',
      () => {
        convert();
        runTool('qemu-img', ['snapshot', '-c', 'before', path]);
        return readFileSync(path);
      },
    ],
  ];

  it.each(kinds)('%s finds its disk', async (_kind, make) => {
    expect(await lookAt(serve(make()))).toMatchObject({ inspection: { format: 'qcow2', virtualSize: 64 * mib } });
    expect(origin?.requests.length).toBeLessThanOrEqual(3);
  });

  it.each(kinds.filter(([kind]) => kind !== 'that is empty'))(
    '%s reports that it was truncated',
    async (_kind, make) => {
      const whole = make();
      // What is missing of the last cluster alone may never have been there: compressed ones end anywhere.
      const most = whole.length - 2 ** whole.readUInt32BE(20);
      for (const length of [whole.length * 0.1, whole.length * 0.5, most].map((one) => Math.floor(one / 512) * 512)) {
        const looked = await lookAt(serve(whole.subarray(0, length)));
        expect([length, looked]).toMatchObject([length, { is: 'refused', reason: 'ImageTruncated' }]);
        await origin?.close();
      }
    },
  );

  /** In pieces like those of an upload: the first is large, the others are whatever arrives. */
  async function* inPieces(file: Buffer): AsyncGenerator<Buffer> {
    for (let at = 0; at < file.length;) {
      const length = at === 0 ? 256 * 1024 : 50_000;
      yield file.subarray(at, at + length);
      at += length;
    }
  }
  const passed = async (file: Buffer, size: number): Promise<number> => {
    let bytes = 0;
    try {
      const header = await readQcow2Header(bufferReader(file.subarray(0, 256 * 1024), size));
      for await (const piece of untilTruncated(header, size, inPieces(file))) bytes += piece.length;
    } catch (error) {
      if (!isTransferError(error) || error.code !== 'ImageTruncated') throw error;
      return -1;
    }
    return bytes;
  };

  it.each(kinds)('%s passes as a whole, and not without its end', async (kind, make) => {
    const whole = make();
    expect(await passed(whole, whole.length)).toBe(whole.length);
    if (kind === 'that is empty') return;
    const most = whole.length - 2 ** whole.readUInt32BE(20);
    for (const length of [whole.length * 0.1, whole.length * 0.5, most].map((one) => Math.floor(one / 512) * 512))
      expect([length, await passed(whole.subarray(0, length), length)]).toEqual([length, -1]);
  });

  it.each([
    ['a backing file', () => create('-u', '-b', '/etc/passwd', '-F', 'raw'), 'ExternalReference', /backing file/],
    ['a data file', () => create('-o', `data_file=${join(dir, 'data')}`), 'ExternalReference', /data file/],
    [
      'a bit for corruption',
      () => {
        const file = create();
        file.writeBigUInt64BE(2n, 72);
        return file;
      },
      'ImageCorrupt',
      /corrupt/,
    ],
  ])('with %s rejects it', async (_what, make, reason, words) => {
    const message = expect.stringMatching(words) as string;
    expect(await lookAt(serve(make()))).toMatchObject({ is: 'refused', reason, message });
  });
});
