// Decides whether marks are worthwhile for a transfer. Pure.

export interface SavePolicy {
  /** Minimum of remaining bytes. */
  readonly leastBytes: number;
  /** The decision is made after this many bytes. */
  readonly watchBytes: number;
  /** Minimum of remaining seconds at the observed speed: a shorter transfer is simply repeated. */
  readonly leastSeconds: number;
  /** Savable digests process 180 MB per second, and would slow down a faster connection. Bytes per second. */
  readonly mostBytesPerSecond: number;
  /** Milliseconds between two marks: each requires a flush. */
  readonly everyMs: number;
}

const mib = 1024 * 1024;

export const savePolicy: SavePolicy = {
  leastBytes: 256 * mib,
  watchBytes: 32 * mib,
  leastSeconds: 60,
  mostBytesPerSecond: 100_000_000,
  everyMs: 5000,
};

export interface Course {
  readonly bytes: number;
  readonly ms: number;
  readonly leftBytes: number;
  /** Each mark includes the states of digests. */
  readonly hasDigests: boolean;
}

/** Whether marks are worth their cost, according to the first `watchBytes`. */
export const isWorthSaving = ({ bytes, ms, leftBytes, hasDigests }: Course, policy: SavePolicy): boolean => {
  const perSecond = (bytes * 1000) / Math.max(1, ms);
  if (hasDigests && perSecond > policy.mostBytesPerSecond) return false;
  return leftBytes / perSecond >= policy.leastSeconds;
};
