// Decompresses single clusters. Synchronous: a stream for each of many thousand clusters would take longer than the decompression.
import { messageOf } from '#shared/runtime/errors.ts';
import { corrupt } from '#shared/transfer/format/disk.ts';
import { type OneShot, createInflater, createZstdUnpacker } from '#shared/transfer/one-shot.ts';

const frameMagic = 0xfd2fb528;

/** Length of the zstd frame at the start of `bytes` (RFC 8878, 3.1.1); the rest is padding. Throws ImageCorrupt. */
export const zstdFrameLength = (bytes: Buffer): number => {
  if (bytes.length < 6 || bytes.readUInt32LE(0) !== frameMagic)
    throw corrupt('a zstd cluster of the qcow2 has lost its magic number');
  const descriptor = bytes.readUInt8(4);
  const isSingleSegment = (descriptor & 0x20) !== 0;
  const sizeFlag = descriptor >> 6;
  const sizeBytes = sizeFlag === 0 ? Number(isSingleSegment) : 2 ** sizeFlag;
  let at = 5 + Number(!isSingleSegment) + ([0, 1, 2, 4][descriptor & 3] ?? 0) + sizeBytes;
  for (;;) {
    if (at + 3 > bytes.length) throw corrupt('a zstd cluster of the qcow2 ends too early');
    const header = bytes.readUIntLE(at, 3);
    at += 3 + (((header >> 1) & 3) === 1 ? 1 : header >> 3);
    if ((header & 1) === 1) break;
  }
  if ((descriptor & 4) !== 0) at += 4;
  if (at > bytes.length) throw corrupt('a zstd cluster of the qcow2 ends too early');
  return at;
};

/** Decompresses clusters of `clusterSize` bytes. Throws ImageCorrupt if one is broken or has another length. */
export const createUnpack = (compression: 'zlib' | 'zstd', clusterSize: number): OneShot => {
  const unpackWhole = compression === 'zlib' ? createInflater(clusterSize) : createZstdUnpacker(clusterSize);
  const pieceOf = (packed: Buffer): Buffer =>
    compression === 'zlib' ? packed : packed.subarray(0, zstdFrameLength(packed));
  return (packed) => {
    const piece = pieceOf(packed);
    let plain: Buffer;
    try {
      plain = unpackWhole(piece);
    } catch (error) {
      throw corrupt(`a compressed cluster of the qcow2 is broken: ${messageOf(error)}`);
    }
    if (plain.length !== clusterSize)
      throw corrupt(`a compressed cluster of the qcow2 unpacks to ${plain.length} of ${clusterSize} bytes`);
    return plain;
  };
};

// Collects adjacent clusters to write them together.

interface Coalescer {
  /** Copies `bytes`; first writes the collected ones if `bytes` does not continue them. */
  push(bytes: Uint8Array, position: number): void;
  flush(): void;
}

export const createCoalescer = (capacity: number, write: (bytes: Uint8Array, position: number) => void): Coalescer => {
  const collected = Buffer.allocUnsafeSlow(capacity);
  let start = 0;
  let length = 0;
  const flush = (): void => {
    if (length > 0) write(collected.subarray(0, length), start);
    length = 0;
  };
  return {
    flush,
    push: (bytes, position) => {
      if (position !== start + length || length + bytes.length > capacity) flush();
      if (length === 0) start = position;
      collected.set(bytes, length);
      length += bytes.length;
    },
  };
};
