// When it pays to write down how far a transfer came. Pure.

export interface SavePolicy {
  /** Bytes a file must have left before anybody bothers. */
  readonly leastBytes: number;
  /** After so many bytes it is decided. */
  readonly watchBytes: number;
  /** Seconds that must be left at the speed until then: what takes less is simply done again. */
  readonly leastSeconds: number;
  /** Digests that can be saved take 180 MB a second; a link as fast as that would wait for them. Bytes a second. */
  readonly mostBytesPerSecond: number;
  /** Milliseconds between two marks: each costs a flush. */
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
  /** Digests must be saved with each mark. */
  readonly hasDigests: boolean;
}

/** Whether marks are worth their price, by how the first `watchBytes` went. */
export const isWorthSaving = ({ bytes, ms, leftBytes, hasDigests }: Course, policy: SavePolicy): boolean => {
  const perSecond = (bytes * 1000) / Math.max(1, ms);
  if (hasDigests && perSecond > policy.mostBytesPerSecond) return false;
  return leftBytes / perSecond >= policy.leastSeconds;
};
