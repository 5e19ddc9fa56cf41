import fc from 'fast-check';
import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, it } from 'vitest';
import { createConnections } from './segments.ts';
import type { ByteSource, SourceFacts } from '#shared/transfer/source/source.ts';
import { streamAhead } from '#shared/transfer/source/stream-ahead.ts';

/** A clock of whole milliseconds that a test moves. */
const aClock = () => {
  let at = 0;
  return { now: () => at, pass: (ms: number) => void (at += ms) };
};

describe('the number of connections', () => {
  /** Plays seconds in which every connection brings `each` bytes a millisecond, up to `link` in all; the number after each twentieth. */
  const play = (
    seconds: number,
    { each, link, isAwaited = true }: { each: number; link: number; isAwaited?: boolean },
  ) => {
    const clock = aClock();
    const connections = createConnections({ first: 2, most: 16, now: clock.now });
    return Array.from({ length: seconds * 20 }, () => {
      clock.pass(50);
      const count = connections.count();
      const rate = Math.min(count * each, link);
      for (let piece = 0; piece < count; piece += 1) connections.arrived((rate * 50) / count, isAwaited);
      return connections.count();
    });
  };

  it.each([
    ['grows while each connection has a limit of its own', { each: 50, link: 1e9 }, 16],
    ['is kept when the link is saturated', { each: 125, link: 125 }, 2],
    ['goes back when the link is full with fewer', { each: 50, link: 200 }, 4],
    ['is kept when the consumer is slower', { each: 50, link: 1e9, isAwaited: false }, 2],
  ])('%s', (_what, network, expected) => {
    expect(play(12, network).at(-1)).toBe(expected);
  });

  it('is increased again after half a minute, since links change', () => {
    const tried = play(60, { each: 125, link: 125 }).flatMap((count, step) => (count > 2 ? [step / 20] : []));
    expect(tried.some((second) => second < 5) && tried.some((second) => second > 28)).toBe(true);
    expect(tried.length).toBeLessThan(60);
  });
});

const facts = (size: number, over: Partial<SourceFacts> = {}): SourceFacts => ({
  size,
  head: Buffer.alloc(0),
  isWhole: false,
  hasRanges: true,
  isPinned: true,
  ...over,
});

const byteAt = (offset: number): number => (offset * 31 + (offset >> 8)) & 255;
const bytesOf = (offset: number, length: number): Buffer =>
  Buffer.from(Uint8Array.from({ length }, (_, index) => byteAt(offset + index)));

interface Played {
  readonly size: number;
  readonly pieceBytes: number;
  /** Milliseconds before the nth range is there. */
  readonly delays?: readonly number[];
  readonly failsAt?: number;
}

const aSource = ({ size, pieceBytes, delays = [], failsAt = Infinity }: Played) => {
  const clock = aClock();
  const ranges: number[] = [];
  let open = 0;
  let most = 0;
  const source: Pick<ByteSource, 'stream' | 'read'> = {
    async *stream() {
      for (let at = 0; at < size; at += pieceBytes) {
        clock.pass(100);
        yield bytesOf(at, Math.min(pieceBytes, size - at));
      }
    },
    read: async (offset, length) => {
      open += 1;
      most = Math.max(most, open);
      ranges.push(offset);
      await sleep(delays[ranges.length % Math.max(1, delays.length)] ?? 0);
      clock.pass(100);
      open -= 1;
      if (offset + length > failsAt) throw new Error('cut');
      return bytesOf(offset, length);
    },
  };
  return { source: source as ByteSource, clock, ranges, observed: () => ({ open, most }) };
};

const ahead = (played: ReturnType<typeof aSource>, of: SourceFacts, idle = 1) =>
  streamAhead(played.source, of, {
    now: played.clock.now,
    idle: () => idle,
    segmentBytes: 1000,
    leastSplitBytes: 3000,
  });

const collect = async (input: AsyncIterable<Buffer>): Promise<Buffer> => {
  const pieces: Buffer[] = [];
  for await (const piece of input) pieces.push(piece);
  return Buffer.concat(pieces);
};

describe('a stream that reads ahead', () => {
  it('has every byte once and in order, however long each range takes', async () => {
    const sizes = fc.integer({ min: 1, max: 40_000 });
    const delays = fc.array(fc.integer({ min: 0, max: 3 }), { maxLength: 7 });
    await fc.assert(
      fc.asyncProperty(sizes, fc.integer({ min: 100, max: 900 }), delays, async (size, pieceBytes, waits) => {
        const played = aSource({ size, pieceBytes, delays: waits });
        expect((await collect(ahead(played, facts(size)))).equals(bytesOf(0, size))).toBe(true);
        expect(played.observed().open).toBe(0);
      }),
      { numRuns: 40 },
    );
  });

  it('requests ranges from the position of the stream, several at a time', async () => {
    const played = aSource({ size: 20_000, pieceBytes: 100, delays: [1] });
    await collect(ahead(played, facts(20_000)));
    expect(played.ranges.slice(0, 3)).toEqual([1000, 2000, 3000]);
    expect(played.observed().most).toBeGreaterThan(1);
  });

  it.each([
    ['without ranges', { hasRanges: false }, 1],
    ['of an object that may change unobserved', { isPinned: false }, 1],
    ['while this thread is busy itself', {}, 0.2],
  ] as const)('stays one connection %s', async (_what, over, idle) => {
    const played = aSource({ size: 20_000, pieceBytes: 100 });
    expect(await collect(ahead(played, facts(20_000, over), idle))).toHaveLength(20_000);
    expect(played.ranges).toEqual([]);
  });

  it('fails with the error of a range, after all bytes before it, with no open connection', async () => {
    const played = aSource({ size: 20_000, pieceBytes: 100, delays: [2, 0, 1], failsAt: 7500 });
    let received = 0;
    const reading = async () => {
      for await (const piece of ahead(played, facts(20_000))) received += piece.length;
    };
    await expect(reading()).rejects.toThrow('cut');
    expect(received).toBe(7000);
    expect(played.observed().open).toBe(0);
  });

  it('leaves no open connection when the rest is not needed', async () => {
    const played = aSource({ size: 20_000, pieceBytes: 100, delays: [2] });
    let received = 0;
    for await (const piece of ahead(played, facts(20_000))) {
      received += piece.length;
      if (received > 5000) break;
    }
    expect(played.observed().open).toBe(0);
  });
});
