// Reads a whole file by parallel ranges and yields it in order, in reused buffers.
import type { BufferPool } from '#shared/transfer/decode/message.ts';
import type { ByteSource } from './source.ts';

// The number of connections for reading a file: increased while that increases the rate. One is enough for most servers; some limit the rate
// per connection, and on long distances a connection is limited by its window.

/** Minimal time for measuring a rate. */
const leastWindowMs = 500;
/** Minimal gain of additional connections. */
const worthwhile = 1.1;
/** Conditions change: after this time more connections are tried again. */
const retryMs = 30_000;

interface Connections {
  /** Target number of connections. */
  count(): number;
  /** `isAwaited`: the consumer was idle, so more connections would have helped. */
  arrived(bytes: number, isAwaited: boolean): void;
}

interface ConnectionLimits {
  readonly first: number;
  readonly most: number;
  /** Milliseconds. */
  readonly now: () => number;
}

interface Window {
  readonly startedAt: number;
  bytes: number;
  pieces: number;
  awaited: number;
}

/** Doubles the number as long as the rate increases, else returns to the previous one. */
export const createConnections = ({ first, most, now }: ConnectionLimits): Connections => {
  let count = Math.min(first, most);
  /** The rate with fewer connections, while more are being tried. */
  let before: { readonly count: number; readonly rate: number } | undefined;
  let restUntil = 0;
  /** Pieces requested with the previous number do not count for the new one. */
  let stale = 0;
  const open = (): Window => ({ startedAt: now(), bytes: 0, pieces: 0, awaited: 0 });
  let window = open();

  const change = (to: number): void => {
    stale = count;
    count = to;
  };
  const judge = (rate: number, isAwaited: boolean): void => {
    const isBetter = before === undefined || rate > before.rate * worthwhile;
    if (before !== undefined && !isBetter) {
      change(before.count);
      before = undefined;
      restUntil = now() + retryMs;
      return;
    }
    before = undefined;
    if (!isAwaited || count >= most || now() < restUntil) return;
    before = { count, rate };
    change(Math.min(most, count * 2));
  };
  return {
    count: () => count,
    arrived: (bytes, isAwaited) => {
      if (stale > 0) {
        stale -= 1;
        if (stale === 0) window = open();
        return;
      }
      window.bytes += bytes;
      window.pieces += 1;
      if (isAwaited) window.awaited += 1;
      const elapsed = now() - window.startedAt;
      if (elapsed < leastWindowMs || window.pieces < 2 * count) return;
      const { bytes: received, pieces, awaited } = window;
      judge(received / elapsed, awaited > pieces / 2);
      window = open();
    },
  };
};

export interface Segment {
  /** Position of its first byte in the file. */
  readonly offset: number;
  /** Index of its buffer; the consumer of the segment releases it. */
  readonly buffer: number;
  readonly bytes: Uint8Array;
}

interface SegmentRead {
  readonly source: ByteSource;
  readonly size: number;
  /** Start position: a multiple of `segmentBytes`. */
  readonly from: number;
  /** Bytes of a segment; the last one may be shorter. */
  readonly segmentBytes: number;
  /** Bytes at the start of each buffer that are not filled. */
  readonly headroom: number;
  readonly connections: Connections;
  readonly pool: BufferPool;
  /** Called in order of offset. An exception ends the reading. */
  readonly onSegment: (segment: Segment) => void;
}

interface Taken {
  readonly segment: Segment;
  /** Buffers were free: the consumer was idle. */
  readonly isAwaited: boolean;
}

/** Positions in the file, in order, each with a buffer; undefined at the end. */
const createTaker = ({ size, from, segmentBytes, headroom, pool }: SegmentRead) => {
  let next = from;
  let turn: Promise<unknown> = Promise.resolve();
  const takeNext = async (): Promise<Taken | undefined> => {
    if (next >= size) return undefined;
    const isAwaited = pool.hasFree();
    const buffer = await pool.acquire();
    const offset = next;
    next += segmentBytes;
    const shared = pool.buffers[buffer] ?? new SharedArrayBuffer(0);
    const bytes = new Uint8Array(shared, headroom, Math.min(segmentBytes, size - offset));
    return { isAwaited, segment: { offset, buffer, bytes } };
  };
  return {
    /** Position and buffer are taken together, one caller at a time: so the earliest segment always has a buffer, and there is no deadlock. */
    take: (): Promise<Taken | undefined> => {
      const taking = turn.then(takeNext);
      turn = taking.catch(() => {});
      return taking;
    },
    isOver: () => next >= size,
  };
};

/** Completed segments, yielded in order. */
const createSorter = ({ from, segmentBytes, onSegment }: SegmentRead) => {
  const ready = new Map<number, Segment>();
  let handedOn = from;
  return (arrived: Segment): void => {
    ready.set(arrived.offset, arrived);
    for (let segment = ready.get(handedOn); segment !== undefined; segment = ready.get(handedOn)) {
      ready.delete(handedOn);
      handedOn += segmentBytes;
      onSegment(segment);
    }
  };
};

/** Throws the error of the source, the pool or `onSegment`, once no read is in progress. */
export const readSegments = async (read: SegmentRead): Promise<void> => {
  const { source, connections, pool } = read;
  const taker = createTaker(read);
  const handOn = createSorter(read);
  const fetchers: Promise<void>[] = [];
  let running = 0;
  let failure: { readonly error: unknown } | undefined;

  const fetchAll = async (): Promise<void> => {
    for (let taken = await taker.take(); taken !== undefined && failure === undefined; taken = await taker.take()) {
      const { segment, isAwaited } = taken;
      await source.readInto(segment.offset, segment.bytes);
      handOn(segment);
      connections.arrived(segment.bytes.length, isAwaited);
      if (running > connections.count()) return;
      launch();
    }
  };
  const fetch = async (): Promise<void> => {
    try {
      await fetchAll();
    } catch (error) {
      failure ??= { error };
      pool.fail(error);
    } finally {
      running -= 1;
    }
  };
  const launch = (): void => {
    while (running < connections.count() && !taker.isOver() && failure === undefined) {
      running += 1;
      fetchers.push(fetch());
    }
  };
  launch();
  // Awaited fetchers may start more.
  for (const fetcher of fetchers) await fetcher;
  if (failure !== undefined) throw failure.error;
};
