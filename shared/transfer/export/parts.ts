// Divides an object into parts, within the limits of stores and memory, and combines their checksums. Pure.

/** Limit of all S3 stores. The last part may be smaller. */
export const mostParts = 10_000;
const leastPartBytes = 8 * 1024 * 1024;
const partStep = 1024 * 1024;
/** All parts in memory together. */
const memoryBytes = 96 * 1024 * 1024;
const mostAtOnce = 4;

export interface PartPlan {
  readonly partBytes: number;
  /** Parts sent concurrently. */
  readonly atOnce: number;
  /** Buffers: those being sent, the one being filled, and the first part, which is sent last. */
  readonly buffers: number;
}

/**
 * Chooses the part size so that `mostBytes` fit into 10,000 parts. Up to 320 GiB the memory is constant; beyond, parts grow, and two are in
 * memory besides the first.
 */
export const planParts = (mostBytes: number): PartPlan => {
  const needed = Math.ceil(mostBytes / (mostParts - 1) / partStep) * partStep;
  const partBytes = Math.max(leastPartBytes, needed);
  const atOnce = Math.max(1, Math.min(mostAtOnce, Math.floor(memoryBytes / partBytes) - 2));
  return { partBytes, atOnce, buffers: atOnce + 2 };
};

// The CRC-32 of concatenated pieces, from those of the pieces: parts of an object are digested in any order.

/** Reflected polynomial of CRC-32 (gzip, PNG, S3's CRC32). */
const polynomial = 0xedb88320;
const bits = 32;

/** A 32 × 32 matrix over GF(2): the column for each bit. */
type Matrix = Uint32Array;

const times = (matrix: Matrix, vector: number): number => {
  let sum = 0;
  for (let bit = 0, rest = vector; rest !== 0; bit++, rest >>>= 1) if ((rest & 1) === 1) sum ^= matrix[bit] ?? 0;
  return sum >>> 0;
};

const squared = (matrix: Matrix): Matrix => matrix.map((column) => times(matrix, column));

/** The effect of one more zero bit on a CRC. */
const oneZeroBit = (): Matrix =>
  Uint32Array.from({ length: bits }, (_, bit) => (bit === 0 ? polynomial : 2 ** (bit - 1)));

/** The CRC of A followed by B, from those of A and B, and the length of B. */
export const combineCrc32 = (first: number, second: number, secondBytes: number): number => {
  let crc = first;
  // Eight zero bits, then 16, 32 and so on.
  let operator = squared(squared(squared(oneZeroBit())));
  for (let rest = secondBytes; rest > 0; rest = Math.floor(rest / 2)) {
    if (rest % 2 === 1) crc = times(operator, crc);
    operator = squared(operator);
  }
  return (crc ^ second) >>> 0;
};
