// Finds the parts of a buffer that are not zero. Pure.

/** Granularity of holes. Smaller ones cost more writes than they save. */
const blockBytes = 32 * 1024;
const zeroes = Buffer.alloc(blockBytes);

export interface Run {
  readonly start: number;
  readonly end: number;
}

/** Checking both ends first is enough for nearly all blocks with data. */
const isZero = (bytes: Buffer, start: number, end: number): boolean =>
  bytes[start] === 0 && bytes[end - 1] === 0 && zeroes.compare(bytes, start, end, 0, end - start) === 0;

/** Runs of blocks that are not zero, adjacent ones joined, in order. */
export const dataRuns = (bytes: Buffer): readonly Run[] => {
  const runs: Run[] = [];
  let start = -1;
  for (let at = 0; at < bytes.length; at += blockBytes) {
    const end = Math.min(at + blockBytes, bytes.length);
    if (!isZero(bytes, at, end)) {
      if (start === -1) start = at;
    } else if (start !== -1) {
      runs.push({ start, end: at });
      start = -1;
    }
  }
  if (start !== -1) runs.push({ start, end: bytes.length });
  return runs;
};
