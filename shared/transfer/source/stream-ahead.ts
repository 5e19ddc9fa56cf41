// A file from start to end, over one connection, or over several that read ahead if the source is the bottleneck.
import { performance } from 'node:perf_hooks';
import { createConnections } from './segments.ts';
import type { ByteSource, SourceFacts } from '#shared/transfer/source/source.ts';

const mib = 1024 * 1024;
/** At least two, so that the connection is never idle between two requests. */
const leastConnections = 2;
const mostConnections = 8;
/** Milliseconds for which a single connection is measured. */
const watchMs = 1000;
/** Minimal share of the time spent waiting for the source, with nothing else to do. */
const leastWaiting = 0.5;

export interface AheadOptions {
  /** Milliseconds; replaced in tests. */
  readonly now?: () => number;
  /** Share of the time for which this thread was idle, 0..1; replaced in tests. */
  readonly idle?: () => number;
  /** Default: 4 MiB. */
  readonly segmentBytes?: number;
  /** For fewer remaining bytes more connections are not worthwhile. Default: 64 MiB. */
  readonly leastSplitBytes?: number;
  /** Start position; only if the source has ranges and is pinned. */
  readonly from?: number;
}

const idleSince = (): (() => number) => {
  const start = performance.eventLoopUtilization();
  return () => 1 - performance.eventLoopUtilization(start).utilization;
};

interface Start {
  readonly source: ByteSource;
  readonly now: () => number;
  /** Called after each piece. */
  readonly isEnough: (position: number, waitedMs: number, elapsedMs: number) => boolean;
}

/** The stream itself, up to the position where more connections are worth a try; returns that position. */
async function* single({ source, now, isEnough }: Start): AsyncGenerator<Buffer, number, undefined> {
  const startedAt = now();
  let [position, waited] = [0, 0];
  const pieces = source.stream()[Symbol.asyncIterator]();
  try {
    for (;;) {
      const from = now();
      const { done, value } = await pieces.next();
      if (done === true) return position;
      waited += now() - from;
      position += value.length;
      yield value;
      if (isEnough(position, waited, now() - startedAt)) return position;
    }
  } finally {
    await pieces.return?.();
  }
}

interface Rest {
  readonly source: ByteSource;
  readonly from: number;
  readonly size: number;
  readonly segmentBytes: number;
  readonly now: () => number;
}

/** Waits for requests in progress before it ends, in any case. */
async function* several({ source, from, size, segmentBytes, now }: Rest): AsyncGenerator<Buffer, void, undefined> {
  const connections = createConnections({ first: leastConnections, most: mostConnections, now });
  const queue: { readonly bytes: Promise<Buffer>; isThere: boolean }[] = [];
  let next = from;
  let busy = 0;
  const ask = (): void => {
    const bytes = source.read(next, Math.min(segmentBytes, size - next));
    const entry = { bytes, isThere: false };
    next += segmentBytes;
    busy += 1;
    queue.push(entry);
    const arrive = (): void => {
      busy -= 1;
      entry.isThere = true;
      fill();
    };
    const fail = (): void => {
      next = size;
    };
    bytes.then(arrive, fail);
  };
  const fill = (): void => {
    while (next < size && busy < connections.count() && queue.length < connections.count() + 2) ask();
  };
  try {
    fill();
    for (let first = queue[0]; first !== undefined; first = queue[0]) {
      const { isThere } = first;
      const segment = await first.bytes;
      queue.shift();
      connections.arrived(segment.length, !isThere);
      fill();
      yield segment;
    }
  } finally {
    next = size;
    await Promise.allSettled(queue.map(({ bytes }) => bytes));
  }
}

/** All bytes in order, like `source.stream()`, with ranges if those are faster. Throws errors of the source. */
export async function* streamAhead(
  source: ByteSource,
  { hasRanges, isPinned, size = 0 }: SourceFacts,
  options: AheadOptions = {},
): AsyncGenerator<Buffer, void, undefined> {
  const {
    now = () => performance.now(),
    idle = idleSince(),
    segmentBytes = 4 * mib,
    leastSplitBytes = 64 * mib,
  } = options;
  const canSplit = hasRanges && isPinned;
  const isEnough: Start['isEnough'] = (position, waited, elapsed) =>
    canSplit &&
    elapsed >= watchMs &&
    size - position >= leastSplitBytes &&
    waited / elapsed > leastWaiting &&
    idle() > leastWaiting;
  const from = options.from ?? (yield* single({ source, now, isEnough }));
  if (canSplit && from < size) yield* several({ source, from, size, segmentBytes, now });
}
