// Violations of the qcow2 specification, field by field, in images that qemu-img created: rejected here wherever qemu-img rejects them, and accepted files
// become the bytes that qemu-img makes of them.
import { spawnSync } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { temporaryDirectory } from '#test/support/directory.ts';
import { writeDisk } from '#test/support/disk.ts';
import { damagesOf, damaged } from '#test/support/damage.ts';
import { convertQcow2, readQcow2, verdictOnQcow2 } from '#test/support/qcow2-plans.ts';
import { effort, fuzzTimeout } from '#test/support/random.ts';
import { hasTools, runTool } from '#test/support/tools.ts';

const mib = 1024 * 1024;
const directory = temporaryDirectory();
const raw = join(directory, 'disk.raw');

/** Options of qemu-img for each kind of base image. */
const kinds = {
  plain: [],
  'version 2': ['-o', 'compat=0.10'],
  'small clusters': ['-o', 'cluster_size=512,refcount_bits=1'],
  'extended L2': ['-o', 'extended_l2=on,cluster_size=16k,refcount_bits=64'],
  zlib: ['-c', '-o', 'cluster_size=4k'],
  zstd: ['-c', '-o', 'compression_type=zstd'],
  'huge clusters': ['-o', 'cluster_size=2M'],
} as const;

const made = new Map<string, Buffer>();
const baseOf = (name: string): Buffer => {
  const known = made.get(name);
  if (known !== undefined) return known;
  const path = join(directory, 'base.qcow2');
  const options = kinds[name as keyof typeof kinds] ?? ['-o', 'cluster_size=4k'];
  writeDisk(raw, 2 * mib);
  runTool('qemu-img', ['convert', '-f', 'raw', '-O', 'qcow2', ...options, raw, path]);
  if (name === 'snapshots') for (const tag of ['one', 'two']) runTool('qemu-img', ['snapshot', '-c', tag, path]);
  if (name === 'bitmaps') for (const tag of ['a', 'b']) runTool('qemu-img', ['bitmap', '--add', path, tag]);
  const image = readFileSync(path);
  made.set(name, image);
  return image;
};

/** Whether qemu-img opens the file, to inspect it and to read it. */
const isOpened = (image: Buffer): boolean => {
  const path = join(directory, 'opened.qcow2');
  writeFileSync(path, image);
  const { status } = spawnSync('qemu-img', ['info', '-f', 'qcow2', path]);
  return status === 0 && convertQcow2(image) !== undefined;
};

type Change = (image: Buffer) => unknown;
const u32 =
  (at: number, value: number): Change =>
  (image) =>
    image.writeUInt32BE(value, at);
const u64 =
  (at: number, value: bigint): Change =>
  (image) =>
    image.writeBigUInt64BE(value, at);
/** The first extension of the header. */
const extension =
  (type: number, length: number, fields: readonly bigint[] = [], autoclear = 0n): Change =>
  (image) => {
    image.writeUInt32BE(type, 112);
    image.writeUInt32BE(length, 116);
    for (const [index, value] of fields.entries()) image.writeBigUInt64BE(value, 120 + index * 8);
    image.writeBigUInt64BE(autoclear, 88);
  };
const snapshot =
  (at: number, value: number): Change =>
  (image) =>
    image.writeUInt32BE(value, Number(image.readBigUInt64BE(64)) + at);
const bitmaps = 0x2385_2875;
const aBitmap = (count: bigint, bytes: bigint, offset: bigint, autoclear = 1n): Change =>
  extension(bitmaps, 24, [count, bytes, offset], autoclear);

describe.skipIf(!hasTools('qemu-img'))('a qcow2 against its specification', () => {
  it.each<[what: string, base: string, change: Change, code: string, words: RegExp]>([
    ['the magic number', 'plain', u32(0, 0x514649fa), 'UnsupportedFormat', /magic/],
    ['version 1', 'plain', u32(4, 1), 'UnsupportedFormat', /version 1/],
    ['version 4', 'plain', u32(4, 4), 'UnsupportedFormat', /version 4/],
    ['a backing file', 'plain', u64(8, 200n), 'ExternalReference', /backing file/],
    ['a backing file behind the first cluster', 'plain', u64(8, 2n ** 40n), 'ExternalReference', /backing file/],
    ['clusters of 256 bytes', 'plain', u32(20, 8), 'ImageCorrupt', /clusters of 2\^8/],
    ['clusters of 4 MiB', 'plain', u32(20, 22), 'ImageCorrupt', /clusters of 2\^22/],
    ['an unknown encryption', 'plain', u32(32, 3), 'ImageEncrypted', /method 3/],
    ['AES without a key', 'plain', u32(32, 1), 'ImageEncrypted', /AES/],
    ['LUKS without its extension', 'plain', u32(32, 2), 'ImageEncrypted', /LUKS/],
    ['an L1 table that is too short', 'small clusters', u32(36, 1), 'ImageCorrupt', /L1 table has 1 entries/],
    ['an L1 table that is too long', 'plain', u32(36, 2 ** 22 + 1), 'ImageCorrupt', /L1 table has/],
    ['an L1 table between clusters', 'plain', u64(40, 0x30200n), 'ImageCorrupt', /L1 table at 197120/],
    ['an L1 table at an impossible place', 'plain', u64(40, 2n ** 63n), 'ImageCorrupt', /L1 offset/],
    ['a refcount table between clusters', 'plain', u64(48, 0x10200n), 'ImageCorrupt', /refcount table at 66048/],
    ['a refcount table at an impossible place', 'plain', u64(48, 2n ** 63n), 'ImageCorrupt', /refcount table offset/],
    ['no refcount table', 'plain', u32(56, 0), 'ImageCorrupt', /no refcount table/],
    ['a refcount table that is too large', 'plain', u32(56, 129), 'ImageCorrupt', /refcount table has 129/],
    ['a snapshot table between clusters', 'plain', u64(64, 1n), 'ImageCorrupt', /snapshot table at 1 is not aligned/],
    ['a snapshot table at an impossible place', 'plain', u64(64, 2n ** 63n), 'ImageCorrupt', /snapshot table offset/],
    ['too many snapshots', 'snapshots', u32(60, 65_537), 'ImageCorrupt', /65537 snapshots/],
    ['too much extra data of a snapshot', 'snapshots', snapshot(36, 1025), 'ImageCorrupt', /1025 bytes of extra data/],
    ['an unknown incompatible feature', 'plain', u64(72, 32n), 'UnsupportedFormat', /0x20/],
    ['a data file that is not there', 'plain', u64(72, 4n), 'ExternalReference', /data file/],
    ['a raw data file without a data file', 'plain', u64(88, 2n), 'ImageCorrupt', /autoclear bit 1/],
    ['a compression bit without a type', 'plain', u64(72, 8n), 'ImageCorrupt', /compression type 0/],
    ['a compression type without its bit', 'zstd', u64(72, 0n), 'ImageCorrupt', /compression type 1/],
    ['an unknown compression', 'zstd', (image) => image.writeUInt8(2, 104), 'UnsupportedFormat', /compression type 2/],
    ['extended L2 entries of small clusters', 'zlib', u64(72, 16n), 'ImageCorrupt', /extended L2/],
    ['refcounts of 128 bits', 'plain', u32(96, 7), 'ImageCorrupt', /refcount order is 7/],
    ['a header of 96 bytes', 'plain', u32(100, 96), 'ImageCorrupt', /header says it has 96/],
    ['a header that is larger than its cluster', 'plain', u32(100, 65_544), 'ImageCorrupt', /header says it has 65544/],
    ['an extension beyond its area', 'plain', extension(0x1234, 65_536 - 119), 'ImageCorrupt', /extension 0x1234/],
    ['that in version 2', 'version 2', u32(76, 2 ** 31), 'ImageCorrupt', /extension 0x/],
    ['a backing format without end', 'plain', extension(0xe2792aca, 16), 'ImageCorrupt', /backing format extension/],
    ['keys of an encryption that is not there', 'plain', extension(0x0537be77, 16), 'ImageCorrupt', /for encryption/],
    ['bitmaps in 23 bytes', 'plain', extension(bitmaps, 23), 'ImageCorrupt', /23 bytes/],
    ['no bitmaps', 'plain', aBitmap(0n, 64n, 0x10000n), 'ImageCorrupt', /0 bitmaps/],
    ['too many bitmaps', 'plain', aBitmap(65_536n << 32n, 64n, 0x10000n), 'ImageCorrupt', /65536 bitmaps/],
    ['a reserved field of bitmaps', 'plain', aBitmap((1n << 32n) | 1n, 64n, 0x10000n), 'ImageCorrupt', /reserved/],
    ['bitmaps between clusters', 'plain', aBitmap(1n << 32n, 64n, 0x10200n), 'ImageCorrupt', /directory at 66048/],
    ['bitmaps without a directory', 'plain', aBitmap(1n << 32n, 0n, 0x10000n), 'ImageCorrupt', /directory of 0/],
    ['endless bitmaps', 'plain', aBitmap(1n << 32n, 2n ** 40n, 0x10000n), 'ImageCorrupt', /directory of 1099511627776/],
  ])('%s of %s is rejected, by Bullion and by qemu-img', async (...[, base, change, code, words]) => {
    const image = Buffer.from(baseOf(base));
    change(image);
    expect(isOpened(image)).toBe(false);
    const fault = { code, message: expect.stringMatching(words) };
    await expect(readQcow2(image, mib)).rejects.toMatchObject(fault);
  });

  it.each<[what: string, base: string, change: Change]>([
    ...Object.keys(kinds).map((kind): [string, string, Change] => [`of kind ${kind}`, kind, () => {}]),
    ['with snapshots', 'snapshots', () => {}],
    ['with an unknown extension', 'plain', extension(0x1234, 64)],
    ['with an extension that fills its area', 'plain', extension(0x1234, 65_536 - 120)],
    ['with a data file that no bit asks for', 'plain', extension(0x44415441, 16)],
    ['with bitmaps that do not hold', 'plain', aBitmap(1n << 32n, 0n, 1n, 0n)],
    ['with unknown compatible features', 'plain', u64(80, 2n ** 40n)],
    ['with the length of a backing file, and none', 'plain', u32(16, 50)],
  ])('a qcow2 %s is accepted, by Bullion and by qemu-img', async (_what, base, change) => {
    const image = Buffer.from(baseOf(base));
    change(image);
    expect(isOpened(image)).toBe(true);
    expect(await verdictOnQcow2(image)).toBe('same');
  });

  it('bitmaps are left to qemu-img: Bullion does not read a file that has some', async () => {
    expect(await verdictOnQcow2(baseOf('bitmaps'))).toBe('left to qemu-img');
  });

  it.each(['dirty', 'corrupt'])('a qcow2 marked %s is rejected with the command that repairs it', async (mark) => {
    const image = Buffer.from(baseOf('plain'));
    image.writeBigUInt64BE(mark === 'dirty' ? 1n : 2n, 72);
    await expect(readQcow2(image, mib)).rejects.toThrow(/qemu-img check -r all/);
  });

  it.skipIf(!hasTools('qemu-io'))('a qcow2 whose writer was killed is rejected until it is repaired', async () => {
    const path = join(directory, 'killed.qcow2');
    runTool('qemu-img', ['create', '-q', '-f', 'qcow2', '-o', 'lazy_refcounts=on', path, '4M']);
    const writes = ['write -P 0x55 0 64k', 'flush', 'abort'].flatMap((command) => ['-c', command]);
    spawnSync('qemu-io', ['-f', 'qcow2', ...writes, path]);
    await expect(readQcow2(readFileSync(path), mib)).rejects.toThrow(/qemu-img check -r all/);
    runTool('qemu-img', ['check', '-q', '-f', 'qcow2', '-r', 'all', path]);
    expect(await verdictOnQcow2(readFileSync(path))).toBe('same');
  });

  it(
    'is the same disk for Bullion and for qemu-img or rejected, however header, extensions and tables were changed',
    async () => {
      const names = [...Object.keys(kinds), 'snapshots', 'bitmaps'];
      /** Header and extensions, the tables behind them, anything. */
      const damage = fc.array(
        damagesOf([
          [0, 112],
          [0, 112],
          [112, 512],
          [0, 512 * 1024],
          [0, mib],
        ]),
        {
          minLength: 1,
          maxLength: 3,
        },
      );
      const verdicts: Record<string, number> = {};
      await fc.assert(
        fc.asyncProperty(fc.constantFrom(...names), damage, async (name, changes) => {
          const file = damaged(baseOf(name), 'BE', changes);
          // A larger disk does not fit in the memory of a test.
          fc.pre(file.readBigUInt64BE(24) <= 2n ** 30n);
          const verdict = await verdictOnQcow2(file);
          verdicts[verdict] = (verdicts[verdict] ?? 0) + 1;
          expect(verdict).toMatch(/^(same|left to qemu-img|[A-Z][A-Za-z]+)$/);
        }),
        { numRuns: 20 * effort },
      );
      console.info('qcow2, damaged:', JSON.stringify(verdicts));
    },
    fuzzTimeout,
  );
});
