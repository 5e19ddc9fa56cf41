// What the format readers have in common: bytes at an offset in, the size of the guest's disk out.
import { TransferError } from '#shared/transfer/fault.ts';
import type { ImageFormat } from '#shared/transfer/format/detect.ts';

/** Uncompressed bytes of an image file, at any offset. */
export interface DiskReader {
  /** Absent while only the beginning of a stream is known. */
  readonly size: number | undefined;
  /** Up to `length` bytes; fewer at the end of what is known. */
  read(offset: number, length: number): Promise<Buffer>;
}

export interface DiskHeader {
  readonly format: ImageFormat;
  /** Bytes of the disk a guest sees. */
  readonly virtualSize: number;
}

/** The part of a file that is in memory. */
export const bufferReader = (bytes: Buffer, size?: number): DiskReader => ({
  size,
  read: (offset, length) => Promise.resolve(bytes.subarray(offset, offset + length)),
});

/** `length` bytes or an ImageTruncated fault naming `what` is missing. */
export const readExactly = async (
  reader: DiskReader,
  offset: number,
  length: number,
  what: string,
): Promise<Buffer> => {
  const bytes = await reader.read(offset, length);
  if (bytes.length === length) return bytes;
  throw new TransferError(
    'ImageTruncated',
    `the file ends inside its ${what}: ${length} bytes at ${offset} are needed`,
  );
};

export const corrupt = (message: string): TransferError => new TransferError('ImageCorrupt', message);

/** A 64-bit number as a JavaScript one; beyond 2^53 no disk is meant. */
export const toSafeNumber = (value: bigint, what: string): number => {
  if (value > BigInt(Number.MAX_SAFE_INTEGER)) throw corrupt(`${what} is ${value}, which is absurd`);
  return Number(value);
};

/** Throws unless the region lies inside the file, where the file's size is known. */
export const checkInside = (reader: DiskReader, offset: number, length: number, what: string): void => {
  if (reader.size !== undefined && offset + length > reader.size) {
    throw new TransferError('ImageTruncated', `${what} at ${offset} ends beyond the file's ${reader.size} bytes`);
  }
};

/** Disk sizes are whole sectors. */
export const roundToSector = (bytes: number): number => Math.ceil(bytes / 512) * 512;
