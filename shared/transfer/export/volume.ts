// The exported volume: its size and the extents of its data.
import { messageOf } from '#shared/runtime/errors.ts';
import { TransferError, isTransferError } from '#shared/transfer/fault.ts';
import { smallestDiskBytes } from '#shared/transfer/format/detect.ts';
import { roundToSector } from '#shared/transfer/format/disk.ts';
import { type DataExtent, findData } from '#shared/transfer/export/extents.ts';
import { openDisk, sizeOf } from '#shared/transfer/source/handle.ts';

export interface ExportVolume {
  /** A block device, or a raw disk in a file. Never a link: a writer of the volume could point it to any file. */
  readonly path: string;
  /** Bytes of the guest's disk: whole sectors. */
  readonly size: number;
  /** In order, widened to multiples of the requested unit. */
  readonly extents: readonly DataExtent[];
}

const measure = async (path: string): Promise<number> => {
  try {
    const file = await openDisk(path);
    try {
      return await sizeOf(file);
    } finally {
      await file.close();
    }
  } catch (error) {
    if (isTransferError(error)) throw error;
    throw new TransferError('SourceInterrupted', `cannot read the volume at ${path}: ${messageOf(error)}`, {
      cause: error,
    });
  }
};

/** Throws TransferError if there is no disk. */
export const lookAtVolume = async (path: string, unit: number, signal: AbortSignal): Promise<ExportVolume> => {
  const bytes = await measure(path);
  if (bytes < smallestDiskBytes)
    throw new TransferError('NotADiskImage', `the volume at ${path} has ${bytes} bytes only`);
  const size = roundToSector(bytes);
  return { path, size, extents: await findData(path, { size, unit, signal }) };
};

/** Bytes that must be read. */
export const dataBytes = ({ extents }: ExportVolume): number =>
  extents.reduce((sum, { start, end }) => sum + end - start, 0);

/** Number of units that are sampled, all over the data. */
const sampledUnits = 256;
/** Minimal share of zeroes among the sampled units that is worth reading the volume twice. */
const noticeable = 1 / 64;

/**
 * Whether a large share of the mapped data is zero: the file was written or allocated in full, or its file system reports no holes.
 * Deterministic for the same bytes.
 */
export const hasHiddenZeroes = async (volume: ExportVolume, unit: number): Promise<boolean> => {
  const { path, extents } = volume;
  const step = Math.max(unit, Math.ceil(dataBytes(volume) / sampledUnits / unit) * unit);
  const bytes = Buffer.alloc(unit);
  const zeroes = Buffer.alloc(unit);
  await using file = await openDisk(path);
  let [observed, empty, skip] = [0, 0, 0];
  for (const { start, end } of extents) {
    let at = start + skip;
    for (; at < end; at += step) {
      // Sequential, into one buffer.
      // oxlint-disable-next-line no-await-in-loop
      const { bytesRead } = await file.read(bytes, 0, unit, at);
      observed += 1;
      if (bytes.subarray(0, bytesRead).equals(zeroes.subarray(0, bytesRead))) empty += 1;
    }
    skip = at - end;
  }
  return empty > observed * noticeable;
};
