// Sums of what is stored: each thing counts once, however many share it.
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { footprintGroups, footprintOf } from '#shared/catalogue/footprint.ts';
import { distinct, type StoredThing } from '#shared/catalogue/stored.ts';

const thing = (over: Partial<StoredThing> = {}): StoredThing => ({
  key: 'claim vms/a',
  kind: 'version',
  name: 'a',
  storedFor: [{ namespace: 'vms', image: 'datasource/fedora' }],
  className: 'fast',
  bytes: 10,
  disks: new Map(),
  lastUse: '',
  keptBy: 'its cron offers it',
  isHeld: false,
  file: undefined,
  ...over,
});
const forImage = (image: string, namespace = 'vms') => ({ namespace, image });

const few = (...names: readonly string[]) => fc.constantFrom(...names);
const someThing: fc.Arbitrary<StoredThing> = fc.record({
  key: few('a', 'b', 'c', 'd', 'e'),
  kind: few('image', 'version', 'copy', 'deleted') as fc.Arbitrary<StoredThing['kind']>,
  name: few('x', 'y'),
  storedFor: fc.array(fc.record({ namespace: few('n', 'm'), image: few('i', 'j', 'k') }), {
    minLength: 1,
    maxLength: 3,
  }),
  className: few('fast', 'slow'),
  bytes: fc.nat(1000),
  disks: fc.array(few('p', 'q', 'r')).map((names) => new Map(names.map((name) => [name, '2026-01-01T00:00:00Z']))),
  lastUse: few('', '2026-01-01T00:00:00Z', '2026-02-01T00:00:00Z'),
  keptBy: fc.option(few('a lock'), { nil: undefined }),
  isHeld: fc.boolean(),
  file: fc.option(fc.record({ content: few('1', '2'), bytes: fc.constant(7) }), { nil: undefined }),
});

describe('a footprint', () => {
  it('has totals that count each stored thing once, whatever is shared', () => {
    fc.assert(
      fc.property(fc.array(someThing), few(...footprintGroups), (found, group) => {
        const things = distinct(found);
        const { rows, total } = footprintOf(things, group as (typeof footprintGroups)[number]);
        const largest = new Map<string, number>();
        for (const { key, bytes } of found) largest.set(key, Math.max(bytes, largest.get(key) ?? 0));
        const sum = (numbers: Iterable<number>) => [...numbers].reduce((all, one) => all + one, 0);
        expect(total.bytes).toBe(sum(largest.values()));
        expect(total.stored).toBe(largest.size);
        expect(total.freedBytes + sum(things.map(({ keptBy, bytes }) => (keptBy === undefined ? 0 : bytes)))).toBe(
          total.bytes,
        );
        // What only one row has is counted in that one alone.
        const alone = sum(rows.map(({ bytes, sharedBytes }) => bytes - sharedBytes));
        expect(alone + total.sharedBytes).toBe(total.bytes);
        expect(Math.max(0, ...rows.map(({ disks }) => disks))).toBeLessThanOrEqual(total.disks);
      }),
    );
  });

  it('shows what two images share in both, and once in the total', () => {
    const things = distinct([
      thing({ key: 'backing image b', storedFor: [forImage('harvester/a')] }),
      thing({ key: 'backing image b', storedFor: [forImage('harvester/b')], keptBy: undefined }),
      thing({ key: 'claim vms/c', storedFor: [forImage('harvester/a')], bytes: 5 }),
    ]);
    const { rows, total } = footprintOf(things, 'image');
    expect(rows.map(({ name, bytes, sharedBytes, freedBytes }) => [name, bytes, sharedBytes, freedBytes])).toEqual([
      ['harvester/a', 15, 10, 0],
      ['harvester/b', 10, 10, 0],
    ]);
    expect(total).toMatchObject({ bytes: 15, sharedBytes: 10, stored: 2 });
    expect(footprintOf(things, 'namespace').total.sharedBytes).toBe(0);
  });

  it.each([
    ['image', ['n/datasource/fedora 30', 'm/harvester/jammy 4']],
    ['version', ['n/b 20', 'n/a 10', 'm/jammy 4']],
    ['class', ['undefined/fast 24', 'undefined/slow 10']],
    ['namespace', ['undefined/n 30', 'undefined/m 4']],
  ] as const)('has rows by %s, those that take the most first', (by, expected) => {
    const fedora = { storedFor: [forImage('datasource/fedora', 'n')] };
    const things = [
      thing({ key: '1', name: 'a', className: 'slow', ...fedora }),
      thing({ key: '2', name: 'jammy', bytes: 4, storedFor: [forImage('harvester/jammy', 'm')] }),
      thing({ key: '3', name: 'b', bytes: 20, ...fedora }),
    ];
    const { rows } = footprintOf(things, by);
    expect(rows.map(({ namespace, name, bytes }) => `${namespace}/${name} ${bytes}`)).toEqual(expected);
  });

  it('counts the bytes of a file once, and the last use of any', () => {
    const file = { content: 'sha', bytes: 3 };
    const things = [
      thing({ key: '1', file, lastUse: '2026-01-01T00:00:00Z', disks: new Map([['d', '']]) }),
      thing({ key: '2', file, lastUse: '2026-02-01T00:00:00Z', disks: new Map([['d', '']]) }),
      thing({ key: '3', file: { content: 'other', bytes: 4 } }),
    ];
    expect(footprintOf(things, 'class').rows).toMatchObject([
      { publishedBytes: 7, lastUse: '2026-02-01T00:00:00Z', disks: 1, stored: 3, sameContentBytes: 10 },
    ]);
  });
});
