// How an object is cut into parts, within what stores allow and memory permits. Pure.

/** Of every store that speaks S3. The last part may be smaller. */
export const mostParts = 10_000;
const leastPartBytes = 8 * 1024 * 1024;
const partStep = 1024 * 1024;
/** All parts in memory together. */
const memoryBytes = 96 * 1024 * 1024;
const mostAtOnce = 4;

export interface PartPlan {
  readonly partBytes: number;
  /** Parts on their way at once. */
  readonly atOnce: number;
  /** Buffers: those on their way, the one being filled, and the first, which waits for the end. */
  readonly buffers: number;
}

/**
 * Parts large enough that `mostBytes` of them fit into 10,000. Up to 320 GiB of them the memory is a constant; beyond, parts must grow, and two are
 * in memory besides the first.
 */
export const planParts = (mostBytes: number): PartPlan => {
  const needed = Math.ceil(mostBytes / (mostParts - 1) / partStep) * partStep;
  const partBytes = Math.max(leastPartBytes, needed);
  const atOnce = Math.max(1, Math.min(mostAtOnce, Math.floor(memoryBytes / partBytes) - 2));
  return { partBytes, atOnce, buffers: atOnce + 2 };
};
