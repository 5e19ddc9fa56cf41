// Divides a cluster map into tasks for the segments of a file that is read from start to end. Pure.
import type { ClusterMap, Extent } from './cluster-map.ts';

/** A task of a segment: bytes at `offset` of its buffer go to `guest`. Compressed ones are decompressed first. */
export interface Task {
  readonly offset: number;
  readonly length: number;
  readonly guest: number;
  readonly isCompressed: boolean;
}

interface SegmentTasks {
  readonly tasks: readonly Task[];
  /** Bytes at the end of the segment that the next one needs. */
  readonly carriedBytes: number;
}

export interface SegmentPlanner {
  /**
   * The tasks of the next segment, `length` bytes from `base`. Offsets count from the first byte of the segment; those of clusters that started
   * in the previous segment are negative.
   */
  next(base: number, length: number): SegmentTasks;
  /** Whether no extent is left. */
  isDone(): boolean;
}

/** Remaining extents. */
export interface ExtentQueue {
  /** Passes all remaining extents that start before `end`. */
  takeBefore(end: number, take: (extent: Extent) => void): void;
  isEmpty(): boolean;
}

export const queueOf = (map: ClusterMap): ExtentQueue => {
  let index = 0;
  return {
    takeBefore: (end, take) => {
      while (index < map.count && map.at(index).host < end) take(map.at(index++));
    },
    isEmpty: () => index === map.count,
  };
};

/**
 * The remaining extents for a reader that starts at `from` of the file, after an earlier reader has processed the whole segment behind `from`:
 * a compressed cluster that starts before `from` is already done.
 */
export const queueFrom = (map: ClusterMap, from: number): ExtentQueue => {
  let rests: Extent[] = [];
  const inner = queueOf(map);
  inner.takeBefore(from, ({ host, length, guest, kind }) => {
    const skipped = from - host;
    if (kind === 'compressed' || length <= skipped) return;
    rests.push({ host: from, length: length - skipped, guest: guest + skipped, kind });
  });
  return {
    takeBefore: (end, take) => {
      for (const rest of rests) take(rest);
      rests = [];
      inner.takeBefore(end, take);
    },
    isEmpty: () => rests.length === 0 && inner.isEmpty(),
  };
};

/** Segments must come in order and without gaps; only the last one may be shorter than the longest compressed cluster. */
export const createSegmentPlanner = (queue: ExtentQueue): SegmentPlanner => {
  let carried: Extent[] = [];

  const plan = (extent: Extent, base: number, end: number, tasks: Task[]): Extent | undefined => {
    const { host, length, guest, kind } = extent;
    const isWhole = host + length <= end;
    if (kind === 'compressed') {
      if (!isWhole) return extent;
      tasks.push({ offset: host - base, length, guest, isCompressed: true });
      return undefined;
    }
    const here = Math.min(length, end - host);
    tasks.push({ offset: host - base, length: here, guest, isCompressed: false });
    return isWhole ? undefined : { host: end, length: length - here, guest: guest + here, kind };
  };

  return {
    next: (base, length) => {
      const end = base + length;
      const tasks: Task[] = [];
      const rest: Extent[] = [];
      const take = (extent: Extent): void => {
        const remaining = plan(extent, base, end, tasks);
        if (remaining !== undefined) rest.push(remaining);
      };
      for (const extent of carried) take(extent);
      queue.takeBefore(end, take);
      carried = rest;
      return { tasks, carriedBytes: rest.reduce((most, { host }) => Math.max(most, end - host), 0) };
    },
    isDone: () => queue.isEmpty() && carried.length === 0,
  };
};

// Determines which bytes of a streamed qcow2 must be kept: all that were not used yet. Pure.

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
