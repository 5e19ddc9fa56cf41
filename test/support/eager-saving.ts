// Marks as often as can be, for tests of what goes on from them.
import type { SavePolicy } from '#shared/transfer/resume/policy.ts';

export const eagerSaving: SavePolicy = {
  leastBytes: 0,
  watchBytes: 0,
  leastSeconds: 0,
  mostBytesPerSecond: Infinity,
  everyMs: 0,
};
