import fc from 'fast-check';
import {
  constants,
  createInflateRaw,
  deflateRawSync,
  inflateRawSync,
  zstdCompressSync,
  zstdDecompressSync,
} from 'node:zlib';
import { describe, expect, it } from 'vitest';
import {
  type OneShot,
  createDeflater,
  createInflater,
  createZstdPacker,
  createZstdUnpacker,
  reuse,
} from '#shared/transfer/one-shot.ts';

const most = 4096;
const windowBits = 12;

/** Noise, and text that packs well. */
const pieces = fc.array(
  fc.oneof(
    fc.uint8Array({ maxLength: most }),
    fc
      .tuple(fc.uint8Array({ minLength: 1, maxLength: 40 }), fc.integer({ min: 1, max: 100 }))
      .map(([bytes, times]) => Buffer.concat(Array.from({ length: times }, () => bytes))),
  ),
  { maxLength: 20 },
);

interface Form {
  readonly name: string;
  readonly pack: OneShot;
  readonly unpackWhole: OneShot;
  readonly unpack: OneShot;
  readonly packWhole: OneShot;
}

const forms: readonly Form[] = [
  {
    name: 'deflate',
    pack: createDeflater(most, 6),
    unpackWhole: (piece) => inflateRawSync(piece, { windowBits }),
    unpack: createInflater(most),
    packWhole: (piece) => deflateRawSync(piece, { windowBits }),
  },
  ...[false, true].map((isFile) => ({
    name: isFile ? 'zstd of files' : 'zstd',
    pack: createZstdPacker(most, 3, isFile),
    unpackWhole: (piece: Buffer) => zstdDecompressSync(piece),
    unpack: createZstdUnpacker(most),
    packWhole: (piece: Buffer) => zstdCompressSync(piece),
  })),
];

describe.each(forms)('$name block by block', ({ pack, unpackWhole, unpack, packWhole }) => {
  it('returns what Node returns for each block', () => {
    fc.assert(
      fc.property(pieces, (all) => {
        for (const piece of all.map((bytes) => Buffer.from(bytes))) {
          expect(unpackWhole(Buffer.from(pack(piece)))).toEqual(piece);
          expect(unpack(packWhole(piece))).toEqual(piece);
        }
      }),
    );
  });

  it('rejects what is truncated, too long or invalid, and processes the next block', () => {
    const lengthOf = (piece: Buffer): number => {
      try {
        return unpack(piece).length;
      } catch {
        return -1;
      }
    };
    const good = packWhole(Buffer.from('good'.repeat(1000)));
    fc.assert(
      fc.property(fc.integer({ min: 1, max: good.length - 1 }), fc.uint8Array({ maxLength: 64 }), (cut, garbage) => {
        expect(lengthOf(good.subarray(0, cut))).toBeLessThan(4000);
        expect(unpack(good).toString()).toBe('good'.repeat(1000));
        expect(lengthOf(Buffer.from(garbage))).toBeLessThan(4000);
        expect(() => unpack(packWhole(Buffer.alloc(most + 1)))).toThrow(/more than 4096 bytes/);
        expect(unpack(packWhole(Buffer.alloc(most)))).toEqual(Buffer.alloc(most));
      }),
    );
  });
});

it('uses level and flags of zstd for all blocks', () => {
  const piece = Buffer.from('a file '.repeat(500));
  const pack = createZstdPacker(most, 19, true);
  const [first, second] = [Buffer.from(pack(piece)), Buffer.from(pack(piece))];
  expect(second).toEqual(first);
  // Content size and checksum in the frame's descriptor (RFC 8878, 3.1.1.1.1).
  expect(first.readUInt8(4) & 0b0010_0100).toBe(0b0010_0100);
});

it('is not used when Node has no such handle', () => {
  const end = constants.Z_FINISH;
  expect(reuse({ create: () => ({}), end, most, renews: false })).toBeUndefined();
  expect(reuse({ create: () => ({ _handle: {} }), end, most, renews: false })).toBeUndefined();
  expect(reuse({ create: () => createInflateRaw(), end, most, renews: false })).toBeDefined();
});
