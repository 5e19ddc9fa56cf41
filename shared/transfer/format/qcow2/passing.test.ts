import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { createUnpack } from '#shared/transfer/decode/cluster.ts';
import { bufferReader } from '#shared/transfer/format/disk.ts';
import { readQcow2Header } from '#shared/transfer/format/qcow2/header.ts';
import { createKept, createSegmentPlanner, queueOf, type Task } from './segments.ts';
import { createPassingTables, isAllKept } from '#shared/transfer/format/qcow2/passing.ts';
import { readClusterMap } from '#shared/transfer/format/qcow2/tables.ts';
import { type ImagePlan, buildQcow2 } from '#test/support/qcow2-image.ts';
import { convertQcow2, imagePlans } from '#test/support/qcow2-plans.ts';
import { effort, fuzzTimeout } from '#test/support/random.ts';
import { refusalOf } from '#test/support/refusal.ts';
import { hasTools } from '#test/support/tools.ts';

interface Passed {
  readonly disk: Buffer;
  /** Bytes that had to be kept, including tables. */
  readonly keptBytes: number;
  /** Clusters are used twice, so not all of them were kept. */
  readonly isAgain: boolean;
}

/** As the sequential route does it, with segments of `clusters` clusters, over a scratch file in memory. */
const passBy = async (file: Buffer, clusters: number): Promise<Passed> => {
  const header = await readQcow2Header(bufferReader(file));
  const disk = Buffer.alloc(header.virtualSize);
  const scratch = Buffer.alloc(file.length);
  const unpack = createUnpack(header.compression, header.clusterSize);
  const write = (from: Buffer, base: number, tasks: readonly Task[]): void => {
    for (const { offset, length, guest, isCompressed } of tasks) {
      const bytes = from.subarray(base + offset, base + offset + length);
      (isCompressed ? unpack(bytes) : bytes).copy(disk, guest);
    }
  };
  const segmentBytes = clusters * header.clusterSize;
  const tables = createPassingTables(header);
  const kept = createKept();
  const planner = createSegmentPlanner(tables.queue);
  let keptBytes = 0;
  for (let base = 0; base < file.length; base += segmentBytes) {
    const segment = file.subarray(base, base + segmentBytes);
    const { tasks } = planner.next(base, segment.length);
    write(file, base, tasks);
    for (const { start, end } of kept.rest(base, segment.length, tasks)) {
      segment.copy(scratch, base + start, start, end);
      keptBytes += end - start;
    }
    tables.see(base, segment);
  }
  const map = await readClusterMap(header, bufferReader(scratch, scratch.length));
  const missed = tables.missed(map!);
  if (!isAllKept(kept, tables, missed)) return { disk, keptBytes, isAgain: true };
  const late = createSegmentPlanner(queueOf(missed));
  for (let base = 0; base < file.length; base += segmentBytes) {
    write(scratch, base, late.next(base, Math.min(segmentBytes, file.length - base)).tasks);
  }
  expect(late.isDone()).toBe(true);
  return { disk, keptBytes, isAgain: false };
};

const verdictOn = (passed: Passed | undefined, refusal: string, file: Buffer): string => {
  if (passed === undefined) return refusal;
  if (passed.isAgain) return 'again';
  return passed.disk.equals(convertQcow2(file) ?? Buffer.alloc(0)) ? 'same' : 'different';
};

const segmentClusters = fc.constantFrom(2, 3, 8, 64);

describe.skipIf(!hasTools('qemu-img'))('a qcow2 that is read sequentially', () => {
  it(
    'becomes what qemu-img makes of it, whatever its layout',
    async () => {
      await fc.assert(
        fc.asyncProperty(imagePlans, segmentClusters, async (plan, clusters) => {
          const { file } = buildQcow2(plan);
          const { disk, isAgain } = await passBy(file, clusters);
          expect(isAgain).toBe(false);
          expect(disk.equals(convertQcow2(file)!)).toBe(true);
        }),
        { numRuns: 12 * effort },
      );
    },
    fuzzTimeout,
  );

  it(
    'becomes that, is rejected, or is read again, however its tables and its end were changed',
    async () => {
      const damage = fc.array(fc.tuple(fc.nat(), fc.nat(), fc.nat(7)), { maxLength: 3 });
      const part = fc.constantFrom(1, 1, 0.9, 0.5);
      await fc.assert(
        fc.asyncProperty(imagePlans, damage, part, segmentClusters, async (plan, changes, share, clusters) => {
          const { file: whole, tables } = buildQcow2(plan);
          for (const [which, where, bit] of changes) {
            const table = tables[which % tables.length]!;
            const at = table.offset + (where % table.length);
            whole[at] = whole[at]! ^ (1 << bit);
          }
          const file = whole.subarray(0, Math.floor(whole.length * share));
          let passed: Passed | undefined;
          const refusal = await refusalOf(async () => {
            passed = await passBy(file, clusters);
          });
          expect(verdictOn(passed, refusal, file)).toMatch(/^(same|again|ImageCorrupt|ImageTruncated)$/);
        }),
        { numRuns: 20 * effort },
      );
    },
    fuzzTimeout,
  );
});

describe('the clusters that must be kept of a sequential qcow2', () => {
  /** 80 clusters of 4 KiB under one table, whose place in the file `order` decides: it is the last of 81. */
  const keptOf = async (over: Partial<ImagePlan>) => {
    const { file } = buildQcow2({
      version: 3,
      clusterBits: 12,
      compression: 'zlib',
      hasExtendedL2: false,
      clusters: Array.from({ length: 80 }, () => 'plain'),
      shortSectors: 0,
      order: [...Array.from({ length: 80 }, () => 1), 0],
      gap: 0,
      isL1First: true,
      ...over,
    });
    return (await passBy(file, 2)).keptBytes / file.length;
  };

  it('are few when tables precede their clusters', async () => {
    expect(await keptOf({})).toBeLessThan(0.15);
  });

  it.each([
    ['its table comes last', { order: Array.from({ length: 81 }, (_, index) => index) }],
    ['the table of tables comes last', { isL1First: false }],
  ])('are all of them when %s', async (_what, over) => {
    expect(await keptOf(over)).toBe(1);
  });
});
