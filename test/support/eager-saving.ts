// Writes marks as often as possible, for tests of resuming from them.
import type { SavePolicy } from '#shared/transfer/resume/policy.ts';

export const eagerSaving: SavePolicy = {
  leastBytes: 0,
  watchBytes: 0,
  leastSeconds: 0,
  mostBytesPerSecond: Infinity,
  everyMs: 0,
};
