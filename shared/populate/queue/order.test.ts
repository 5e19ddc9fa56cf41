import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { QueueLimits } from '#shared/populate/queue/limits.ts';
import { type RunningTransfer, type WaitingTransfer, orderQueue } from '#shared/populate/queue/order.ts';
import { effort, seed } from '#test/support/random.ts';

const limits = (over: Partial<QueueLimits> = {}): QueueLimits => ({ weights: new Map(), ...over });
const minute = (at: number): string => new Date(at * 60_000).toISOString();

/** `a1`, `a2`, …: transfers of a namespace, one a minute. */
const waiting = (namespace: string, count: number, over: Partial<WaitingTransfer> = {}): readonly WaitingTransfer[] =>
  Array.from({ length: count }, (_, index) => ({
    uid: `${namespace}${index + 1}`,
    namespace,
    priority: 0,
    since: minute(index),
    ...over,
  }));

const namesOf = (some: readonly WaitingTransfer[]): string => some.map(({ uid }) => uid).join(' ');

describe('the queue of transfers', () => {
  it.each<readonly [string, QueueLimits, readonly WaitingTransfer[], readonly RunningTransfer[], string, string]>([
    ['without limits', limits(), waiting('a', 3), [], 'a1 a2 a3', ''],
    ['oldest first', limits({ running: 2 }), waiting('a', 3), [], 'a1 a2', 'a3'],
    [
      'in turn by namespace',
      limits({ running: 4 }),
      [...waiting('a', 4), ...waiting('b', 2)],
      [],
      'a1 b1 a2 b2',
      'a3 a4',
    ],
    [
      'what runs counts',
      limits({ running: 3 }),
      [...waiting('a', 2), ...waiting('b', 2)],
      [{ namespace: 'a' }],
      'b1 a1',
      'b2 a2',
    ],
    [
      'by weight',
      limits({ running: 4, weights: new Map([['a', 3]]) }),
      [...waiting('a', 4), ...waiting('b', 4)],
      [],
      'a1 b1 a2 a3',
      'b2 a4 b3 b4',
    ],
    [
      'priority before share',
      limits({ running: 2 }),
      [...waiting('a', 2), ...waiting('b', 2, { priority: 5 })],
      [],
      'b1 b2',
      'a1 a2',
    ],
    [
      'a full namespace holds no other back',
      limits({ running: 3, runningPerNamespace: 1 }),
      [...waiting('a', 2), ...waiting('b', 2)],
      [{ namespace: 'a' }],
      'b1',
      'a1 b2 a2',
    ],
    [
      'a full host holds no other back',
      limits({ runningPerHost: 1 }),
      [...waiting('a', 2, { host: 'slow' }), ...waiting('b', 1, { host: 'fast' })],
      [],
      'a1 b1',
      'a2',
    ],
    ['copies have no host', limits({ runningPerHost: 1 }), waiting('a', 2), [], 'a1 a2', ''],
  ])('%s', (_name, given, some, running, admitted, left) => {
    const order = orderQueue(given, some, running);
    expect([namesOf(order.admitted), namesOf(order.waiting)]).toEqual([admitted, left]);
  });

  const transfer = fc.record({
    namespace: fc.constantFrom('a', 'b', 'c'),
    host: fc.option(fc.constantFrom('x', 'y'), { nil: undefined }),
    priority: fc.constantFrom(0, 10),
    since: fc.nat(20).map(minute),
  });
  const limit = fc.option(fc.integer({ min: 1, max: 5 }), { nil: undefined });
  const given = fc.record({ running: limit, runningPerNamespace: limit, runningPerHost: limit });
  const most = (some: readonly RunningTransfer[], keyOf: (one: RunningTransfer) => string | undefined): number =>
    Math.max(
      0,
      ...Map.groupBy(
        some.filter((one) => keyOf(one) !== undefined),
        keyOf,
      )
        .values()
        .map(({ length }) => length),
    );

  it('keeps every limit, loses nobody, and leaves no room that somebody could take', () => {
    fc.assert(
      fc.property(given, fc.array(transfer, { maxLength: 30 }), (some, list) => {
        const queue = list.map((one, index) => ({ ...one, uid: String(index) }));
        const order = orderQueue(limits(some), queue, []);
        expect([...order.admitted, ...order.waiting].map(({ uid }) => Number(uid)).toSorted((a, b) => a - b)).toEqual(
          queue.map((_, index) => index),
        );
        const fits = (running: readonly RunningTransfer[]): boolean =>
          running.length <= (some.running ?? Infinity) &&
          most(running, ({ namespace }) => namespace) <= (some.runningPerNamespace ?? Infinity) &&
          most(running, ({ host }) => host) <= (some.runningPerHost ?? Infinity);
        expect(fits(order.admitted)).toBe(true);
        for (const one of order.waiting) expect(fits([...order.admitted, one])).toBe(false);
      }),
      { seed, numRuns: 200 * effort },
    );
  });
});

/** Each transfer takes a minute. Returns how many minutes each transfer of a namespace waited. */
const waitsOf = (queue: readonly WaitingTransfer[], running: number): ReadonlyMap<string, readonly number[]> => {
  const waits = new Map<string, number[]>();
  let left: readonly WaitingTransfer[] = queue;
  for (let now = 0; left.length > 0; now += 1) {
    const { admitted, waiting: others } = orderQueue(limits({ running }), left, []);
    for (const { namespace } of admitted) waits.set(namespace, [...(waits.get(namespace) ?? []), now]);
    left = others;
  }
  return waits;
};

describe('a tenant that asks for 900 of 1,000 imports', () => {
  it('makes the others wait less than three times as long as they would share the queue without it', () => {
    const others = Array.from({ length: 9 }, (_, index) => waiting(`t${index}`, index === 0 ? 12 : 11)).flat();
    const longest = (waits: ReadonlyMap<string, readonly number[]>): number =>
      Math.max(...[...waits].filter(([namespace]) => namespace !== 'greedy').flatMap(([, of]) => of));
    const alone = longest(waitsOf(others, 10));
    const crowded = longest(waitsOf([...waiting('greedy', 900, { since: minute(-1) }), ...others], 10));
    expect(alone).toBeGreaterThan(5);
    expect(crowded).toBeLessThan(3 * alone);
  });
});
