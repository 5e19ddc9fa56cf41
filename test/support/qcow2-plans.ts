// qcow2 files of every kind, and qemu-img's result for them: the reference for our own readers.
import { spawnSync } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import fc from 'fast-check';
import { expect } from 'vitest';
import { createUnpack } from '#shared/transfer/decode/cluster.ts';
import { bufferReader } from '#shared/transfer/format/disk.ts';
import { readQcow2Header } from '#shared/transfer/format/qcow2/header.ts';
import { createSegmentPlanner, queueOf } from '#shared/transfer/format/qcow2/segments.ts';
import { readClusterMap } from '#shared/transfer/format/qcow2/tables.ts';
import { sharedDirectory } from '#test/support/directory.ts';
import type { ClusterKind, ImagePlan } from '#test/support/qcow2-image.ts';
import { refusalOf } from '#test/support/refusal.ts';

const directory = sharedDirectory();

/** qemu-img's result for the file; `undefined` if it fails. */
export const convertQcow2 = (file: Buffer): Buffer | undefined => {
  const source = join(directory, 'fuzz.qcow2');
  const target = join(directory, 'fuzz.raw');
  writeFileSync(source, file);
  const { status } = spawnSync('qemu-img', ['convert', '-f', 'qcow2', '-O', 'raw', source, target], {
    timeout: 20_000,
  });
  return status === 0 ? readFileSync(target) : undefined;
};

const kinds: readonly ClusterKind[] = ['hole', 'zero', 'zeroAllocated', 'plain', 'plainZeroes', 'compressed'];
const v2Kinds: readonly ClusterKind[] = ['hole', 'plain', 'plainZeroes', 'compressed'];

export const imagePlans: fc.Arbitrary<ImagePlan> = fc
  .record({
    version: fc.constantFrom<2 | 3>(2, 3, 3),
    clusterBits: fc.constantFrom(9, 10, 12, 14, 16),
    compression: fc.constantFrom<'zlib' | 'zstd'>('zlib', 'zstd'),
    hasExtendedL2: fc.boolean(),
    picks: fc.array(fc.nat(1000), { minLength: 1, maxLength: 90 }),
    shortSectors: fc.constantFrom(0, 0, 1, 5, 127),
    order: fc.array(fc.nat(1000), { minLength: 1, maxLength: 100 }),
    gap: fc.constantFrom(0, 0, 1, 511, 700),
    isL1First: fc.boolean(),
  })
  .map(({ picks, ...plan }) => {
    const { version } = plan;
    const hasExtendedL2 = plan.hasExtendedL2 && version === 3 && plan.clusterBits >= 14;
    const choice = version === 2 ? v2Kinds : kinds;
    return {
      ...plan,
      hasExtendedL2,
      compression: version === 2 ? 'zlib' : plan.compression,
      shortSectors: Math.min(plan.shortSectors, 2 ** plan.clusterBits / 512 - 1),
      clusters: picks.map((pick) => choice[pick % choice.length] ?? 'hole'),
    };
  });

/**
 * The guest's disk, read like the direct route: from start to end, in segments, with carried-over bytes. `undefined` for files that it leaves
 * to qemu-img.
 */
export const readQcow2 = async (file: Buffer, segmentBytes: number): Promise<Buffer | undefined> => {
  const reader = bufferReader(file, file.length);
  const header = await readQcow2Header(reader);
  const map = await readClusterMap(header, reader);
  if (map === undefined) return undefined;
  const disk = Buffer.alloc(header.virtualSize);
  const planner = createSegmentPlanner(queueOf(map));
  const unpack = createUnpack(header.compression, header.clusterSize);
  const length = Math.max(segmentBytes, 2 * header.clusterSize + 512);
  let carried = 0;
  for (let base = 0; base < file.length; base += length) {
    const segment = file.subarray(base, base + length);
    const { tasks, carriedBytes } = planner.next(base, segment.length);
    for (const { offset, length: bytes, guest, isCompressed } of tasks) {
      expect(offset).toBeGreaterThanOrEqual(-carried);
      expect(offset + bytes).toBeLessThanOrEqual(segment.length);
      const content = file.subarray(base + offset, base + offset + bytes);
      (isCompressed ? unpack(content) : content).copy(disk, guest);
    }
    carried = carriedBytes;
  }
  expect(planner.isDone()).toBe(true);
  return disk;
};

/** `same` as qemu-img's result for `reference`, `different`, `left to qemu-img`, or the code of the error. */
export const verdictOnQcow2 = async (file: Buffer, reference = file): Promise<string> => {
  let disk: Buffer | undefined;
  const outcome = await refusalOf(async () => {
    disk = await readQcow2(file, 4096);
  });
  if (outcome !== 'accepted') return outcome;
  if (disk === undefined) return 'left to qemu-img';
  return disk.equals(convertQcow2(reference) ?? Buffer.alloc(0)) ? 'same' : 'different';
};
