// The number of connections for reading a file: increased while that increases the rate. One is enough for most servers; some limit the rate
// per connection, and on long distances a connection is limited by its window.

/** Minimal time for measuring a rate. */
const leastWindowMs = 500;
/** Minimal gain of additional connections. */
const worthwhile = 1.1;
/** Conditions change: after this time more connections are tried again. */
const retryMs = 30_000;

export interface Connections {
  /** Target number of connections. */
  count(): number;
  /** `isAwaited`: the consumer was idle, so more connections would have helped. */
  arrived(bytes: number, isAwaited: boolean): void;
}

export interface ConnectionLimits {
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
