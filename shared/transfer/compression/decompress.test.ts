import { spawnSync } from 'node:child_process';
import { gzipSync, zstdCompressSync } from 'node:zlib';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { decompress } from '#shared/transfer/compression/decompress.ts';
import { decompressHead } from '#shared/transfer/compression/head.ts';
import { readXzSize } from '#shared/transfer/compression/xz-index.ts';
import { createFrameSplitter } from '#shared/transfer/compression/zstd-frames.ts';
import { bufferReader } from '#shared/transfer/format/disk.ts';
import type { Compression } from '#shared/transfer/format/detect.ts';
import { damaged, damagesOf } from '#test/support/damage.ts';
import { noise } from '#test/support/disk.ts';
import { effort, fuzzTimeout } from '#test/support/random.ts';
import { refusalOf } from '#test/support/refusal.ts';
import { hasTools, runTool } from '#test/support/tools.ts';

const plain = Buffer.concat([
  Buffer.alloc(2_500_000),
  noise('x', 700_000),
  Buffer.from('text '.repeat(100_000)),
  Buffer.alloc(99),
]);

const packers: Readonly<Record<Exclude<Compression, 'none'>, (bytes: Buffer) => Buffer>> = {
  gz: (bytes) => gzipSync(bytes),
  zst: (bytes) => zstdCompressSync(bytes),
  xz: (bytes) => runTool('xz', ['-0', '-c', '--block-size=500KiB'], bytes),
};

async function* pieces(bytes: Buffer, length: number): AsyncGenerator<Buffer, void, undefined> {
  for (let at = 0; at < bytes.length; at += length) yield bytes.subarray(at, at + length);
}

const unpack = async (compression: Compression, packed: Buffer, length = 65_536): Promise<Buffer> => {
  const parts: Buffer[] = [];
  for await (const part of decompress(compression, pieces(packed, length))) parts.push(part);
  return Buffer.concat(parts);
};

const packable = (['gz', 'zst', 'xz'] as const).filter((compression) => compression !== 'xz' || hasTools('xz'));

describe.each(packable)('%s', (compression) => {
  const packed = packers[compression](plain);

  it.each([1_000_000_000, 65_536, 4099])('is decompressed from pieces of %i bytes', async (length) => {
    expect((await unpack(compression, packed, length)).equals(plain)).toBe(true);
  });

  it('is decompressed when it has several members', async () => {
    const three = Buffer.concat([packed, packers[compression](Buffer.alloc(0)), packed]);
    expect((await unpack(compression, three, 10_007)).equals(Buffer.concat([plain, plain]))).toBe(true);
  });

  it.each([1, 9, 1000, 500_000])('reports that %i bytes are missing at its end', async (missing) => {
    const cut = packed.subarray(0, packed.length - missing);
    await expect(unpack(compression, cut)).rejects.toMatchObject({ code: 'ImageTruncated' });
  });

  it('reports trailing data', async () => {
    const more = Buffer.concat([packed, Buffer.from('and now for something different')]);
    await expect(unpack(compression, more)).rejects.toMatchObject({ code: 'ImageCorrupt' });
  });

  it('rethrows the error of its input', async () => {
    const failing = async function* () {
      yield packed.subarray(0, 100_000);
      throw new Error('the wire broke');
    };
    const reading = async () => {
      for await (const part of decompress(compression, failing())) expect(part.length).toBeGreaterThan(0);
    };
    await expect(reading()).rejects.toThrow('the wire broke');
  });

  it('releases its input when its reader stops', async () => {
    let isReleased = false;
    const endless = async function* () {
      try {
        for (;;) yield* pieces(packed, 65_536);
      } finally {
        isReleased = true;
      }
    };
    for await (const part of decompress(compression, endless())) {
      expect(part.length).toBeGreaterThan(0);
      break;
    }
    expect(isReleased).toBe(true);
  });

  it('returns its first bytes from the first bytes of input', async () => {
    const head = await decompressHead(compression, packed.subarray(0, 200_000), 65_536);
    expect(head.equals(plain.subarray(0, 65_536))).toBe(true);
    expect(await decompressHead(compression, packed.subarray(0, 12), 65_536)).toHaveLength(0);
    expect((await decompressHead(compression, packers[compression](Buffer.from('tiny')), 65_536)).toString()).toBe(
      'tiny',
    );
  });

  it(
    'is decompressed like its own tool does, or rejected, however it was changed',
    async () => {
      const small = packers[compression](plain.subarray(2_400_000, 2_600_000));
      const tool = { gz: 'gzip', xz: 'xz', zst: 'zstd' }[compression];
      const damage = fc.array(
        damagesOf([
          [0, 64],
          [0, small.length],
          [small.length - 64, small.length],
        ]),
        { minLength: 1, maxLength: 3 },
      );
      const verdicts: Record<string, number> = {};
      await fc.assert(
        fc.asyncProperty(damage, async (changes) => {
          const changed = damaged(small, 'LE', changes);
          let bytes: Buffer | undefined;
          let verdict = await refusalOf(async () => (bytes = await unpack(compression, changed)));
          if (bytes !== undefined) {
            const { status, stdout } = spawnSync(tool, ['-d', '-c'], { input: changed, maxBuffer: 2 ** 30 });
            verdict = status === 0 && bytes.equals(stdout) ? 'same' : 'different';
          }
          verdicts[verdict] = (verdicts[verdict] ?? 0) + 1;
          expect(['same', 'ImageCorrupt', 'ImageTruncated', 'UnsupportedFormat']).toContain(verdict);
        }),
        { numRuns: (compression === 'xz' ? 10 : 30) * effort },
      );
      console.info(`${compression}, damaged:`, JSON.stringify(verdicts));
    },
    fuzzTimeout,
  );
});

describe('the zstd frame splitter', () => {
  const skippable = Buffer.concat([Buffer.from('5a2a4d1805000000', 'hex'), Buffer.from('hello')]);
  const frames = [zstdCompressSync(plain), zstdCompressSync(Buffer.alloc(0)), zstdCompressSync(Buffer.from('x'))];
  const expected = frames.map((frame) => frame.toString('base64'));
  const file = Buffer.concat([skippable, ...frames.slice(0, 2), skippable, frames[2] ?? Buffer.alloc(0)]);

  it('finds every frame, however the file is split into pieces', () => {
    fc.assert(
      fc.property(fc.array(fc.integer({ min: 1, max: 100_000 }), { minLength: 1, maxLength: 40 }), (lengths) => {
        const splitter = createFrameSplitter();
        const found: Buffer[][] = [[]];
        for (let at = 0, turn = 0; at < file.length; turn++) {
          const length = lengths[turn % lengths.length] ?? 1;
          for (const { bytes, last } of splitter.push(file.subarray(at, at + length))) {
            found.at(-1)?.push(bytes);
            if (last) found.push([]);
          }
          at += length;
        }
        expect(splitter.isComplete()).toBe(true);
        expect(found.slice(0, -1).map((parts) => Buffer.concat(parts).toString('base64'))).toEqual(expected);
      }),
      { numRuns: 30 },
    );
  });
});

describe.skipIf(!hasTools('xz'))('the xz index', () => {
  const packed = packers.xz(plain);
  const sizeOf = (bytes: Buffer) => readXzSize(bufferReader(bytes, bytes.length));

  it('contains the size of one stream, of several, and of padded ones', async () => {
    expect(await sizeOf(packed)).toBe(plain.length);
    const padded = Buffer.concat([packed, Buffer.alloc(512), packed, Buffer.alloc(4)]);
    expect(await sizeOf(padded)).toBe(2 * plain.length);
  });

  it('returns nothing for an invalid index', async () => {
    expect(await sizeOf(packed.subarray(0, -1))).toBeUndefined();
    expect(await sizeOf(Buffer.alloc(0))).toBeUndefined();
    expect(await sizeOf(Buffer.alloc(70_000))).toBeUndefined();
    await fc.assert(
      fc.asyncProperty(fc.integer({ min: 1, max: 60 }), fc.nat(255), async (fromEnd, value) => {
        const damaged = Buffer.from(packed);
        damaged[damaged.length - fromEnd] = value;
        expect([undefined, plain.length]).toContain(await sizeOf(damaged));
      }),
    );
  });
});
