// The CRC-32 of bytes one behind the other, from those of the pieces: parts of an object are digested in any order. Pure.

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

/** What one zero bit more does to a CRC. */
const oneZeroBit = (): Matrix =>
  Uint32Array.from({ length: bits }, (_, bit) => (bit === 0 ? polynomial : 2 ** (bit - 1)));

/** The CRC of A and then B, from those of A and of B, and the bytes of B. */
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
