// Common parts of the format readers: input is bytes at an offset, output the size of the guest's disk.
import { TransferError } from '#shared/transfer/fault.ts';
import type { ImageFormat } from '#shared/transfer/format/detect.ts';

/** Uncompressed bytes of an image file, at any offset. */
export interface DiskReader {
  /** Undefined while only the start of a stream is known. */
  readonly size: number | undefined;
  /** Up to `length` bytes; fewer at the end of the known part. */
  read(offset: number, length: number): Promise<Buffer>;
}

export interface DiskHeader {
  readonly format: ImageFormat;
  /** Bytes of the guest's disk. */
  readonly virtualSize: number;
}

/** The part of a file that is in memory. */
export const bufferReader = (bytes: Buffer, size?: number): DiskReader => ({
  size,
  read: (offset, length) => Promise.resolve(bytes.subarray(offset, offset + length)),
});

/** `length` bytes, or an ImageTruncated fault that names the missing part `what`. */
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

/** Converts a 64-bit number; a size beyond 2^53 is invalid. */
export const toSafeNumber = (value: bigint, what: string): number => {
  if (value > BigInt(Number.MAX_SAFE_INTEGER)) throw corrupt(`${what} is ${value}, which is out of range`);
  return Number(value);
};

/** Throws unless the region is inside the file, if the size of the file is known. */
export const checkInside = (reader: DiskReader, offset: number, length: number, what: string): void => {
  if (reader.size !== undefined && offset + length > reader.size) {
    throw new TransferError('ImageTruncated', `${what} at ${offset} ends beyond the file's ${reader.size} bytes`);
  }
};

/** Disk sizes are whole sectors. */
export const roundToSector = (bytes: number): number => Math.ceil(bytes / 512) * 512;
