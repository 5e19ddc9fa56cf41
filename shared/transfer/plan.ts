// Inspects a source and selects the route: streamed to the target, or through scratch space and qemu-img.
import { decompress } from '#shared/transfer/compression/decompress.ts';
import { decompressHead } from '#shared/transfer/compression/head.ts';
import { readXzSize } from '#shared/transfer/compression/xz-index.ts';
import { frameContentBytes } from '#shared/transfer/compression/zstd-frames.ts';
import { isTar } from '#shared/transfer/archive/tar-header.ts';
import { TransferError } from '#shared/transfer/fault.ts';
import {
  type Compression,
  type ImageFormat,
  detectCompression,
  detectFormat,
  smallestDiskBytes,
} from '#shared/transfer/format/detect.ts';
import { type DiskReader, bufferReader, roundToSector } from '#shared/transfer/format/disk.ts';
import { inspectDisk, isStructured } from '#shared/transfer/format/inspect.ts';
import { fixedVhdSize, vhdFooterBytes } from '#shared/transfer/format/vhd.ts';
import type { Inspection } from '#shared/transfer/report.ts';
import type { ByteSource, SourceFacts } from '#shared/transfer/source/source.ts';

export interface TransferPlan {
  /** `virtualSize` is undefined if it requires reading the whole file. */
  readonly inspection: Inspection;
  /** `direct`: a qcow2 is decompressed while it is read in ranges. `sequential`: while it is streamed once. `archive`: unpacked into files. */
  readonly route: 'stream' | 'direct' | 'sequential' | 'scratch' | 'archive';
  readonly facts: SourceFacts;
  /** Minimal size of the disk according to the file, if the exact size requires reading all of it. */
  readonly leastBytes?: number | undefined;
}

/** Of the uncompressed content: an ISO is recognized at 32 KiB. */
const contentHeadBytes = 64 * 1024;

/** The required part of the file is not available yet; not a fault of the file. */
const unobserved = new TransferError('InternalFault', 'the needed part of the file was not read yet');

/** The file at any offset, by ranges; the bytes of the probe are not requested again. */
export const rangedReader = (source: ByteSource, { size, head }: SourceFacts): DiskReader => ({
  size,
  read: (offset, length) => {
    const end = Math.min(offset + length, size ?? 0);
    if (end <= head.length) return Promise.resolve(head.subarray(offset, Math.max(offset, end)));
    return source.read(offset, Math.max(0, end - offset));
  },
});

/** Only the start is available; a read beyond it throws `unobserved`. */
const prefixReader = (prefix: Buffer): DiskReader => ({
  size: undefined,
  read: (offset, length) =>
    offset + length > prefix.length
      ? Promise.reject(unobserved)
      : Promise.resolve(prefix.subarray(offset, offset + length)),
});

/** The start of the decompressed content; streamed if the head of the file is not enough. */
const contentHead = async (source: ByteSource, facts: SourceFacts, compression: Compression): Promise<Buffer> => {
  const head = await decompressHead(compression, facts.head, contentHeadBytes);
  if (compression === 'none' || facts.isWhole || head.length === contentHeadBytes) return head;
  const parts: Buffer[] = [];
  let length = 0;
  for await (const chunk of decompress(compression, source.stream())) {
    parts.push(chunk);
    length += chunk.length;
    if (length >= contentHeadBytes) break;
  }
  return Buffer.concat(parts).subarray(0, contentHeadBytes);
};

const refuseNested = (compression: Compression, content: Buffer): void => {
  if (compression === 'none') return;
  if (content.length === 0) throw new TransferError('NotADiskImage', `the ${compression} file unpacks to nothing`);
  const inner = detectCompression(content);
  if (inner !== 'none') {
    throw new TransferError(
      'UnsupportedFormat',
      `the ${compression} file contains another compressed file (${inner}); publish the disk compressed once`,
    );
  }
};

const structuredSize = async (format: ImageFormat, reader: DiskReader): Promise<number | undefined> => {
  if (!isStructured(format)) return undefined;
  try {
    return (await inspectDisk(format, reader)).virtualSize;
  } catch (error) {
    if (error === unobserved) return undefined;
    throw error;
  }
};

/** The size of a raw disk is that of the file, unless its last sector makes it a fixed vhd. */
const rawSize = async (
  reader: DiskReader,
  canSeeTail: boolean,
): Promise<Pick<Inspection, 'virtualSize'> & { isVhd: boolean }> => {
  const { size } = reader;
  if (size === undefined) return { isVhd: false };
  if (size < smallestDiskBytes)
    throw new TransferError('NotADiskImage', `the file has ${size} bytes, less than one sector`);
  const tail = canSeeTail ? await reader.read(size - vhdFooterBytes, vhdFooterBytes) : Buffer.alloc(0);
  const fixed = fixedVhdSize(tail, size);
  return { virtualSize: roundToSector(fixed ?? size), isVhd: fixed !== undefined };
};

const inspectionOf = (facts: SourceFacts, found: Omit<Inspection, 'size'>): Inspection => ({
  format: found.format,
  compression: found.compression,
  ...(facts.size === undefined ? {} : { size: facts.size }),
  ...(found.virtualSize === undefined ? {} : { virtualSize: found.virtualSize }),
  ...(Object.keys(facts.labels ?? {}).length === 0 ? {} : { labels: facts.labels }),
});

/** Our own reader supports qcow2 once the size of its disk is known; the others require qemu-img. */
const structuredRoute = (
  format: ImageFormat,
  virtualSize: number | undefined,
  canSeek: boolean,
): TransferPlan['route'] => {
  if (format !== 'qcow2' || virtualSize === undefined) return 'scratch';
  return canSeek ? 'direct' : 'sequential';
};

const plainPlan = async (source: ByteSource, facts: SourceFacts): Promise<TransferPlan> => {
  const format = detectFormat(facts.head, facts.contentType);
  const canSeeAll = facts.hasRanges || facts.isWhole;
  const reader = canSeeAll ? rangedReader(source, facts) : prefixReader(facts.head);
  if (isStructured(format)) {
    const virtualSize = await structuredSize(format, reader);
    return {
      inspection: inspectionOf(facts, { format, compression: 'none', virtualSize }),
      route: structuredRoute(format, virtualSize, facts.hasRanges && facts.isPinned),
      facts,
    };
  }
  const { virtualSize, isVhd } = await rawSize({ ...reader, size: facts.size }, canSeeAll);
  return {
    inspection: inspectionOf(facts, { format: isVhd ? 'vhd' : format, compression: 'none', virtualSize }),
    route: 'stream',
    facts,
  };
};

/** The decompressed size, if the file contains it: reliable for xz, not for others. */
const contentSize = async (
  source: ByteSource,
  facts: SourceFacts,
  compression: Compression,
): Promise<number | undefined> =>
  compression === 'xz' && facts.hasRanges ? readXzSize(rangedReader(source, facts)) : undefined;

/** Of the last member of a gzip file, or the first frame of a zstd file: a lower bound of the total. */
const leastContentBytes = async (
  source: ByteSource,
  facts: SourceFacts,
  compression: Compression,
): Promise<number | undefined> => {
  if (compression === 'zst') return frameContentBytes(facts.head);
  const { size = 0 } = facts;
  const canSeeEnd = facts.hasRanges || facts.isWhole;
  if (compression !== 'gz' || !canSeeEnd || size < 4) return undefined;
  return (await rangedReader(source, facts).read(size - 4, 4)).readUInt32LE(0);
};

const compressedPlan = async (
  source: ByteSource,
  facts: SourceFacts,
  compression: Compression,
): Promise<TransferPlan> => {
  const content = await contentHead(source, facts, compression);
  refuseNested(compression, content);
  const format = detectFormat(content);
  const isComplete = content.length < contentHeadBytes;
  const reader = isComplete ? bufferReader(content, content.length) : prefixReader(content);
  if (isStructured(format)) {
    const virtualSize = await structuredSize(format, reader);
    const inspection = inspectionOf(facts, { format, compression, virtualSize });
    return { inspection, route: structuredRoute(format, virtualSize, false), facts };
  }
  const contentBytes = isComplete ? content.length : await contentSize(source, facts, compression);
  const virtualSize = contentBytes === undefined ? undefined : roundToSector(contentBytes);
  const leastBytes = virtualSize ?? (await leastContentBytes(source, facts, compression));
  return { inspection: inspectionOf(facts, { format, compression, virtualSize }), route: 'stream', facts, leastBytes };
};

const guestDiskPlan = (facts: SourceFacts): TransferPlan => {
  const { size = 0 } = facts;
  if (size < smallestDiskBytes) throw new TransferError('NotADiskImage', `the source volume has ${size} bytes only`);
  const inspection = { format: 'raw', compression: 'none', size, virtualSize: roundToSector(size) } as const;
  return { inspection, route: 'stream', facts };
};

/** Throws TransferError for a file that cannot be a disk, before anything is written. */
export const planTransfer = async (source: ByteSource): Promise<TransferPlan> => {
  const facts = await source.probe();
  if (facts.isGuestDisk === true) return guestDiskPlan(facts);
  const compression = detectCompression(facts.head);
  return compression === 'none' ? plainPlan(source, facts) : compressedPlan(source, facts, compression);
};

/** Throws UnsupportedFormat if it is not an archive. The size of an archive is known only at its end. */
export const planArchive = async (source: ByteSource): Promise<TransferPlan> => {
  const facts = await source.probe();
  const compression = detectCompression(facts.head);
  if (isTar(await contentHead(source, facts, compression)))
    return { inspection: inspectionOf(facts, { format: 'tar', compression }), route: 'archive', facts };
  throw new TransferError(
    'UnsupportedFormat',
    'a volume with contentType archive takes a tar archive (plain, or in gz, xz, zst), and the file is none; leave contentType out for a disk',
  );
};

const gib = (bytes: number): string => `${bytes} bytes (${(bytes / 1024 ** 3).toFixed(2)} GiB)`;

/** Throws ImageTooLarge with both numbers. `atLeast`: reading stopped before the end was known. */
export const checkCapacity = (virtualSize: number, limitBytes: number, atLeast = false): void => {
  if (virtualSize <= limitBytes) return;
  const needs = `${atLeast ? 'at least ' : ''}${gib(virtualSize)}`;
  throw new TransferError(
    'ImageTooLarge',
    `the image's disk has ${needs}, the volume takes ${gib(limitBytes)}; ask for a larger volume`,
  );
};
