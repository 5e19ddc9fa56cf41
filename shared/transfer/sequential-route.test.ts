// What the tests of images and sources do not come to.
import { describe, expect, it } from 'vitest';
import { readFileSync } from 'node:fs';
import { buildQcow2 } from '#test/support/qcow2-image.ts';
import { convertQcow2 } from '#test/support/qcow2-plans.ts';
import { hasTools } from '#test/support/tools.ts';
import { serve, transfer } from '#test/support/transfer.ts';

const clusterBytes = 4096;
const clusters = 1100;
const perTable = clusterBytes / 8;

/** Plain clusters; the first L2 table precedes them, the others follow, so that the positions are known only when all has been read. */
const build = () =>
  buildQcow2({
    version: 3,
    clusterBits: 12,
    compression: 'zlib',
    hasExtendedL2: false,
    clusters: Array.from({ length: clusters }, () => 'plain' as const),
    shortSectors: 0,
    order: [...Array.from({ length: clusters }, () => 1), 0, 2, 2],
    gap: 0,
    isL1First: true,
  });

/** Two places of the disk that one cluster of the file is for: one known as it passes, one only afterwards. */
const share = ({ file, tables }: ReturnType<typeof build>): void => {
  const [, first, second] = tables.toSorted((a, b) => a.offset - b.offset);
  const last = first!.offset + (perTable - 1) * 8;
  // Without the flag that no other entry uses the cluster.
  const entry = file.readBigUInt64BE(last) & ~(1n << 63n);
  file.writeBigUInt64BE(entry, last);
  file.writeBigUInt64BE(entry, second!.offset);
  const cluster = Number(entry & 0x00ff_ffff_ffff_fe00n) / clusterBytes;
  const block = Number(file.readBigUInt64BE(Number(file.readBigUInt64BE(48))));
  file.writeUInt16BE(2, block + cluster * 2);
};

describe.skipIf(!hasTools('qemu-img'))('a qcow2 from a server without ranges', () => {
  it('becomes what qemu-img makes of it, with nothing left in scratch space', async () => {
    const { file } = build();
    const { report, target, leftovers, log } = await transfer(serve(file, { ranges: false }));
    expect(report).toMatchObject({
      outcome: 'succeeded',
      receivedBytes: expect.toSatisfy((bytes: number) => bytes < 1.5 * file.length),
    });
    expect(log).toContain('"route":"sequential"');
    expect(readFileSync(target).equals(convertQcow2(file)!)).toBe(true);
    expect(leftovers).toEqual([]);
  });

  it('is fetched again when it has a cluster at two positions of the disk', async () => {
    const built = build();
    share(built);
    const { report, target, leftovers } = await transfer(serve(built.file, { ranges: false }));
    expect(report).toMatchObject({
      outcome: 'succeeded',
      receivedBytes: expect.toSatisfy((bytes: number) => bytes > 1.9 * built.file.length),
    });
    expect(readFileSync(target).equals(convertQcow2(built.file)!)).toBe(true);
    expect(leftovers).toEqual([]);
  });

  it('is rejected when its checksum is wrong, and leaves nothing', async () => {
    const checksum = { algorithm: 'sha256' as const, hex: '0'.repeat(64) };
    const { report, leftovers } = await transfer(serve(build().file, { ranges: false }), { checksum });
    expect(report).toMatchObject({ outcome: 'failed', reason: 'ChecksumMismatch' });
    expect(leftovers).toEqual([]);
  });
});
