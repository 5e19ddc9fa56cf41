// The decompressed size of an xz file, from the indexes at the end of its streams (xz file format 1.1.0, sections 2 and 4).
import { crc32 } from 'node:zlib';
import type { DiskReader } from '#shared/transfer/format/disk.ts';

const headerBytes = 12;
const footerBytes = 12;
/** One record per block: enough for a terabyte in the smallest blocks in use. */
const maxIndexBytes = 4 * 1024 * 1024;
/** Each needs two requests; for more streams decompression is faster. */
const maxStreams = 32;
const maxPaddingBytes = 64 * 1024;

interface XzStream {
  /** Bytes of the stream in the file, including header and footer. */
  readonly length: number;
  readonly contentBytes: number;
}

/** Reads variable-length numbers of seven bits per byte; `undefined` after a malformed one. */
const createNumbers = (bytes: Buffer) => {
  let at = 1;
  return {
    position: () => at,
    next: (): number | undefined => {
      let value = 0;
      for (let shift = 0; shift < 49 && at < bytes.length; shift += 7) {
        const byte = bytes[at++] ?? 0;
        value += (byte & 0x7f) * 2 ** shift;
        if (byte < 0x80) return value;
      }
      return undefined;
    },
  };
};

/** Sums up the records of an index; `undefined` if it is not valid. */
export const parseXzIndex = (index: Buffer): XzStream | undefined => {
  const isIndex =
    index.length >= 8 && index[0] === 0 && crc32(index.subarray(0, -4)) === index.readUInt32LE(index.length - 4);
  if (!isIndex) return undefined;
  const numbers = createNumbers(index);
  const records = numbers.next();
  if (records === undefined) return undefined;
  let length = headerBytes + index.length + footerBytes;
  let contentBytes = 0;
  for (let record = 0; record < records; record++) {
    const unpadded = numbers.next();
    const uncompressed = numbers.next();
    if (unpadded === undefined || uncompressed === undefined) return undefined;
    length += Math.ceil(unpadded / 4) * 4;
    contentBytes += uncompressed;
  }
  return { length, contentBytes };
};

const readStream = async (reader: DiskReader, end: number): Promise<XzStream | undefined> => {
  if (end < headerBytes + footerBytes) return undefined;
  const footer = await reader.read(end - footerBytes, footerBytes);
  const isFooter =
    footer.toString('latin1', 10, 12) === 'YZ' && crc32(footer.subarray(4, 10)) === footer.readUInt32LE(0);
  if (!isFooter) return undefined;
  const indexBytes = (footer.readUInt32LE(4) + 1) * 4;
  const start = end - footerBytes - indexBytes;
  if (indexBytes > maxIndexBytes || start < headerBytes) return undefined;
  return parseXzIndex(await reader.read(start, indexBytes));
};

/** The start of the padding between two streams. */
const withoutPadding = async (reader: DiskReader, end: number): Promise<number> => {
  const from = Math.max(0, end - maxPaddingBytes);
  const last = end >= 4 ? await reader.read(end - 4, 4) : Buffer.alloc(0);
  if (last.some((byte) => byte !== 0)) return end;
  const tail = await reader.read(from, end - from);
  let at = tail.length;
  while (at > 0 && tail[at - 1] === 0) at--;
  return from + Math.ceil(at / 4) * 4;
};

/** Decompressed size; `undefined` if the indexes do not contain it. Never reports a broken file: decompression does. */
export const readXzSize = async (reader: DiskReader): Promise<number | undefined> => {
  let end = reader.size;
  if (end === undefined) return undefined;
  let total = 0;
  for (let streams = 0; streams < maxStreams; streams++) {
    end = await withoutPadding(reader, end);
    const stream = await readStream(reader, end);
    if (stream === undefined) return undefined;
    total += stream.contentBytes;
    end -= stream.length;
    if (end === 0) return Number.isSafeInteger(total) ? total : undefined;
    if (end < 0) return undefined;
  }
  return undefined;
};
