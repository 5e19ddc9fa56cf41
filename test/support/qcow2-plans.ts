// qcow2 files of every kind, and what qemu-img makes of them: the measure for our own readers.
import { spawnSync } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import fc from 'fast-check';
import { temporaryDirectory } from '#test/support/directory.ts';
import type { ClusterKind, ImagePlan } from '#test/support/qcow2-image.ts';

const directory = temporaryDirectory();

/** What qemu-img makes of the file; `undefined` when it fails. */
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
