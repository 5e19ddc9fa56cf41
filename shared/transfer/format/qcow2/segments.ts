// Cuts a cluster map into work for the segments of a file that is read from front to back. Pure.
import type { ClusterMap, Extent } from '#shared/transfer/format/qcow2/cluster-map.ts';

/** One thing to do with a segment: bytes at `offset` of its buffer go to `guest`. Compressed ones are unpacked first. */
export interface Task {
  readonly offset: number;
  readonly length: number;
  readonly guest: number;
  readonly isCompressed: boolean;
}

export interface SegmentTasks {
  readonly tasks: readonly Task[];
  /** Bytes at the end of the segment that the next one needs before its own. */
  readonly carriedBytes: number;
}

export interface SegmentPlanner {
  /**
   * The work of the next segment, `length` bytes from `base`. Offsets count from the segment's first byte; those of clusters that began in the
   * segment before are negative.
   */
  next(base: number, length: number): SegmentTasks;
  /** Extents that no segment has reached. */
  isDone(): boolean;
}

/** Extents still to come. */
export interface ExtentQueue {
  /** Hands on all that begin before `end` and were not handed on before. */
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
 * What is left for a reader that begins at `from` of the file, where an earlier one has unpacked all of the segment behind `from`, too: so a compressed
 * cluster that begins before `from` is done.
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

/** Segments must come in order and without gaps, none shorter than the longest compressed cluster but the last. */
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
