// Determines which bytes of a streamed qcow2 must be kept: all that were not used yet. Pure.
import type { Task } from '#shared/transfer/format/qcow2/segments.ts';

const sectorBytes = 512;
/** One bit per sector: for files up to 256 GiB; of larger ones the rest is kept entirely. */
const mostBitmapBytes = 64 * 1024 * 1024;

/** A range of a segment; offsets count from its first byte. */
interface Stretch {
  readonly start: number;
  readonly end: number;
}

/** Bytes of the file. */
export interface Region {
  readonly host: number;
  readonly length: number;
}

export interface Kept {
  /** Ranges of the segment at `base` to keep; its `tasks` use the rest. */
  rest(base: number, length: number, tasks: readonly Task[]): readonly Stretch[];
  /** Whether all of a region of the file was kept. */
  has(region: Region): boolean;
}

/** The whole sectors that only this task uses: compressed clusters share their first and last sector with their neighbours. */
const takenBy = ({ offset, length, isCompressed }: Task, base: number): Stretch => {
  const last = isCompressed ? length - sectorBytes : length;
  const start = Math.ceil((base + Math.max(0, offset)) / sectorBytes) * sectorBytes - base;
  return { start, end: Math.floor((base + offset + last) / sectorBytes) * sectorBytes - base };
};

const createBitmap = () => {
  let bits = new Uint8Array(64 * 1024);
  return {
    /** False if the bitmap would be too large. */
    set: (first: number, end: number): boolean => {
      if (end > mostBitmapBytes * 8) return false;
      while (end > bits.length * 8) {
        const larger = new Uint8Array(bits.length * 2);
        larger.set(bits);
        bits = larger;
      }
      for (let at = first; at < end;) {
        const isByte = (at & 7) === 0 && end - at >= 8;
        if (isByte) bits[at >> 3] = 0xff;
        else bits[at >> 3] = (bits[at >> 3] ?? 0) | (1 << (at & 7));
        at += isByte ? 8 : 1;
      }
      return true;
    },
    hasAny: (first: number, end: number): boolean => {
      for (let at = first; at < end; at++) if (((bits[at >> 3] ?? 0) & (1 << (at & 7))) !== 0) return true;
      return false;
    },
  };
};

export const createKept = (): Kept => {
  const dropped = createBitmap();
  return {
    rest: (base, length, tasks) => {
      const taken = tasks.map((task) => takenBy(task, base)).toSorted((a, b) => a.start - b.start);
      const rest: Stretch[] = [];
      let at = 0;
      for (const { start, end } of taken) {
        if (end <= start || !dropped.set((base + start) / sectorBytes, (base + end) / sectorBytes)) continue;
        if (start > at) rest.push({ start: at, end: start });
        at = Math.max(at, end);
      }
      if (at < length) rest.push({ start: at, end: length });
      return rest;
    },
    has: ({ host, length }) =>
      !dropped.hasAny(Math.floor(host / sectorBytes), Math.ceil((host + length) / sectorBytes)),
  };
};
