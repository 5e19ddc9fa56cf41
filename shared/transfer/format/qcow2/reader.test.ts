import { writeFileSync } from 'node:fs';
import { spawnSync } from 'node:child_process';
import { join } from 'node:path';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { createClusterMapBuilder } from '#shared/transfer/format/qcow2/cluster-map.ts';
import { temporaryDirectory } from '#test/support/directory.ts';
import { buildQcow2 } from '#test/support/qcow2-image.ts';
import { convertQcow2 as convert, imagePlans as plans, readQcow2, verdictOnQcow2 } from '#test/support/qcow2-plans.ts';
import { effort, fuzzTimeout as timeout } from '#test/support/random.ts';
import { hasTools } from '#test/support/tools.ts';

const directory = temporaryDirectory();

const check = (file: Buffer): string => {
  const path = join(directory, 'check.qcow2');
  writeFileSync(path, file);
  return spawnSync('qemu-img', ['check', '-f', 'qcow2', path], { encoding: 'utf8' }).stdout;
};

const safe = /^(same|ImageCorrupt|ImageTruncated)$/;

const segments = fc.constantFrom(1, 4096, 50_000, 4 * 1024 * 1024);

describe.skipIf(!hasTools('qemu-img'))('reading a qcow2 front to back', () => {
  it(
    'returns the same as qemu-img, whatever its layout',
    async () => {
      await fc.assert(
        fc.asyncProperty(plans, segments, async (plan, segmentBytes) => {
          const { file } = buildQcow2(plan);
          expect(check(file)).toContain('No errors were found');
          const expected = convert(file);
          expect(expected).toBeDefined();
          expect((await readQcow2(file, segmentBytes))?.equals(expected!)).toBe(true);
        }),
        { numRuns: 10 * effort },
      );
    },
    timeout,
  );

  it(
    'returns the same as qemu-img or an error, however the tables were changed',
    async () => {
      const damage = fc.array(fc.tuple(fc.nat(), fc.nat(), fc.nat(7)), { minLength: 1, maxLength: 3 });
      await fc.assert(
        fc.asyncProperty(plans, damage, async (plan, changes) => {
          const { file, tables } = buildQcow2(plan);
          for (const [which, where, bit] of changes) {
            const table = tables[which % tables.length]!;
            const at = table.offset + (where % table.length);
            file[at] = file[at]! ^ (1 << bit);
          }
          expect(await verdictOnQcow2(file, file)).toMatch(safe);
        }),
        { numRuns: 12 * effort },
      );
    },
    timeout,
  );

  it(
    'returns the same as qemu-img or an error, wherever the file ends',
    async () => {
      await fc.assert(
        fc.asyncProperty(plans, fc.double({ min: 0, max: 1, noNaN: true }), async (plan, part) => {
          const { file } = buildQcow2(plan);
          const cut = file.subarray(0, Math.floor(file.length * part));
          expect(await verdictOnQcow2(cut, file)).toMatch(safe);
        }),
        { numRuns: 10 * effort },
      );
    },
    timeout,
  );

  it(
    'returns the same as qemu-img or an error, however the clusters were changed',
    async () => {
      await fc.assert(
        fc.asyncProperty(
          plans,
          fc.nat(),
          fc.uint8Array({ minLength: 1, maxLength: 30 }),
          async (plan, where, bytes) => {
            const { file } = buildQcow2(plan);
            Buffer.from(bytes).copy(file, 512 + (where % (file.length - 512)));
            expect(await verdictOnQcow2(file, file)).toMatch(safe);
          },
        ),
        { numRuns: 10 * effort },
      );
    },
    timeout,
  );
});

describe('the cluster map', () => {
  it('joins contiguous clusters, and keeps the others apart', () => {
    const builder = createClusterMapBuilder();
    builder.add({ host: 100, length: 10, guest: 0, kind: 'plain' });
    builder.add({ host: 110, length: 10, guest: 10, kind: 'plain' });
    builder.add({ host: 120, length: 10, guest: 30, kind: 'plain' });
    builder.add({ host: 130, length: 10, guest: 40, kind: 'compressed' });
    builder.add({ host: 50, length: 10, guest: 50, kind: 'plain' });
    const map = builder.build();
    expect(Array.from({ length: map.count }, (_, index) => map.at(index))).toEqual([
      { host: 50, length: 10, guest: 50, kind: 'plain' },
      { host: 100, length: 20, guest: 0, kind: 'plain' },
      { host: 120, length: 10, guest: 30, kind: 'plain' },
      { host: 130, length: 10, guest: 40, kind: 'compressed' },
    ]);
  });

  it('reports when it is full', () => {
    const builder = createClusterMapBuilder(2);
    const scattered = (index: number) => ({ host: index * 100, length: 10, guest: index * 10, kind: 'plain' as const });
    expect([0, 1, 2].map((index) => builder.add(scattered(index)))).toEqual([true, true, false]);
  });

  it('grows without losing entries', () => {
    const builder = createClusterMapBuilder();
    for (let index = 0; index < 20_000; index++)
      builder.add({ host: index * 2, length: 1, guest: index, kind: 'compressed' });
    const map = builder.build();
    expect(map.count).toBe(20_000);
    expect(map.at(19_999)).toEqual({ host: 39_998, length: 1, guest: 19_999, kind: 'compressed' });
  });

  it('sorts millions of extents in little more memory than they need', () => {
    const script = `
      const { createClusterMapBuilder } = await import('#shared/transfer/format/qcow2/cluster-map.ts');
      const [builder, count] = [createClusterMapBuilder(), 2 ** 21];
      for (let at = 0; at < count; at++) builder.add({ host: ((at * 7919) % count) * 65536, length: 512, guest: at, kind: 'plain' });
      const map = builder.build();
      for (let at = 0; at < count; at++) if (map.at(at).host !== at * 65536) throw new Error(\`\${at}\`);`;
    const args = ['--max-old-space-size=24', '--input-type=module', '-e', script];
    const { status, stderr } = spawnSync(process.execPath, args, { encoding: 'utf8' });
    expect([status, stderr]).toEqual([0, '']);
  });
});
