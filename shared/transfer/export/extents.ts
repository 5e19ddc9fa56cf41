// Finds the data of a volume, so that holes are not read. Called before an export.
import { stat } from 'node:fs/promises';
import { TransferError } from '#shared/transfer/fault.ts';
import { runTool } from '#shared/transfer/tool/run-tool.ts';

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
