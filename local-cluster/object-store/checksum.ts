// Digests of a body while it is read: MD5 for the ETag, and those requested by the client.
import { createHash } from 'node:crypto';
import { crc32 } from 'node:zlib';

/** Supported checksums; others are rejected rather than ignored. */
export const checksumAlgorithms = ['crc32', 'crc32c', 'sha1', 'sha256'] as const;
export type ChecksumAlgorithm = (typeof checksumAlgorithms)[number];

export interface Digest {
  update(bytes: Uint8Array): void;
  /** Base64, as in S3. */
  value(): string;
}

/** Castagnoli's polynomial, reflected. */
const crc32cPolynomial = 0x82f63b78;

const crc32cTable = Uint32Array.from({ length: 256 }, (_, byte) => {
  let rest = byte;
  for (let bit = 0; bit < 8; bit++) rest = rest & 1 ? (rest >>> 1) ^ crc32cPolynomial : rest >>> 1;
  return rest >>> 0;
});

const crc32c = (bytes: Uint8Array, before: number): number => {
  let crc = ~before >>> 0;
  for (const byte of bytes) crc = (crc32cTable[(crc ^ byte) & 0xff] ?? 0) ^ (crc >>> 8);
  return ~crc >>> 0;
};

const crcDigest = (step: (bytes: Uint8Array, before: number) => number): Digest => {
  let crc = 0;
  return {
    update: (bytes) => {
      crc = step(bytes, crc);
    },
    value: () => {
      const four = Buffer.alloc(4);
      four.writeUInt32BE(crc >>> 0);
      return four.toString('base64');
    },
  };
};

export const createDigest = (algorithm: ChecksumAlgorithm | 'md5'): Digest => {
  if (algorithm === 'crc32') return crcDigest((bytes, before) => crc32(bytes, before));
  if (algorithm === 'crc32c') return crcDigest(crc32c);
  const hash = createHash(algorithm);
  return { update: (bytes) => void hash.update(bytes), value: () => hash.digest('base64') };
};

export const toHex = (base64: string): string => Buffer.from(base64, 'base64').toString('hex');
