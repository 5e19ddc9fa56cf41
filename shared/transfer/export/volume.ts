// The exported volume: its size and the extents of its data.
import { stat } from 'node:fs/promises';
import { messageOf } from '#shared/runtime/errors.ts';
import { isTransferError, TransferError } from '#shared/transfer/fault.ts';
import { smallestDiskBytes } from '#shared/transfer/format/detect.ts';
import { roundToSector } from '#shared/transfer/format/disk.ts';
import { openDisk, sizeOf } from '#shared/transfer/source/handle.ts';
import { runTool } from '#shared/transfer/tool/run-tool.ts';

// Finds the data of a volume, so that holes are not read. Called before an export.

/** Guest bytes that may be nonzero. */
export interface DataExtent {
  readonly start: number;
  readonly end: number;
}

interface MapEntry {
  readonly start: number;
  readonly length: number;
  readonly data: boolean;
}

/** Each entry is one line: `{ "start": 0, "length": 65536, "depth": 0, "zero": false, "data": true, "offset": 0},`. */
const parseLine = (line: string): MapEntry | undefined => {
  const text = line.replace(/^\s*\[?/, '').replace(/[,\]\s]+$/, '');
  return text === '' ? undefined : (JSON.parse(text) as MapEntry);
};

/** Joins extents that are adjacent after they were widened to multiples of `unit`. */
export const createExtentList = (size: number, unit: number) => {
  const extents: DataExtent[] = [];
  return {
    add: (start: number, length: number): void => {
      const from = Math.floor(start / unit) * unit;
      const end = Math.min(size, Math.ceil((start + length) / unit) * unit);
      const last = extents.at(-1);
      if (last !== undefined && from <= last.end)
        extents[extents.length - 1] = { start: last.start, end: Math.max(last.end, end) };
      else if (from < end) extents.push({ start: from, end });
    },
    extents: (): readonly DataExtent[] => extents,
  };
};

/**
 * Extents of data in order, widened to multiples of `unit` bytes. Devices, and file systems without a map, count as data entirely: zeroes are
 * found by reading.
 */
export const findData = async (
  path: string,
  { size, unit, signal }: { readonly size: number; readonly unit: number; readonly signal: AbortSignal },
): Promise<readonly DataExtent[]> => {
  const everything = [{ start: 0, end: size }];
  if (!(await stat(path)).isFile()) return everything;
  const list = createExtentList(size, unit);
  let rest = '';
  const take = (text: string): void => {
    const lines = `${rest}${text}`.split('\n');
    rest = lines.pop() ?? '';
    for (const line of lines) {
      const entry = parseLine(line);
      if (entry?.data === true) list.add(entry.start, entry.length);
    }
  };
  // -U: it only reads, so it needs no lock on the file.
  const args = [
    'map',
    '-U',
    '--output=json',
    '--image-opts',
    `driver=raw,file.driver=file,file.filename=${path.replaceAll(',', ',,')}`,
  ];
  const end = await runTool({ program: 'qemu-img', args, signal, onOutput: take });
  if (end.isMissing) return everything;
  if (end.status !== 0)
    throw new TransferError('SourceInterrupted', `qemu-img cannot map the data of ${path}: ${end.complaint}`);
  take('\n');
  return list.extents();
};

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
      const { bytesRead } = await file.read(bytes, 0, unit, at);
      observed += 1;
      if (bytes.subarray(0, bytesRead).equals(zeroes.subarray(0, bytesRead))) empty += 1;
    }
    skip = at - end;
  }
  return empty > observed * noticeable;
};
