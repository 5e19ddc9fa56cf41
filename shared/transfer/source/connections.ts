// How many connections a file is read through: more of them while they bring more. One is enough for most servers; some give each connection
// so much and no more, and on long ways one is held up by its window.

/** A rate is told from no less time than that. */
const leastWindowMs = 500;
/** What more connections must bring to be kept. */
const worthwhile = 1.1;
/** Links change: after so long more are retried. */
const retryMs = 30_000;

export interface Connections {
  /** How many there should be now. */
  count(): number;
  /** `isAwaited`: whoever takes the bytes had nothing else to do, so that more would have been welcome. */
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

/** Doubles the number as long as the rate grows with it, else goes back to what was enough. */
export const createConnections = ({ first, most, now }: ConnectionLimits): Connections => {
  let count = Math.min(first, most);
  /** What fewer connections reached, while more are being tried. */
  let before: { readonly count: number; readonly rate: number } | undefined;
  let restUntil = 0;
  /** Pieces asked for under the number before say nothing about this one. */
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
