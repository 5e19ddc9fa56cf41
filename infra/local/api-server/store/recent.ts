// The newest changes in memory, so that a thousand watches of live data read no disk. Older ones are read from the database.
import type { Change } from './change.ts';

export interface Recent {
  readonly push: (change: Change) => void;
  /** Changes after `version`, or undefined when memory does not reach back that far. */
  readonly after: (collection: string, version: number, limit: number) => Change[] | undefined;
}

/** `start` is the version at which memory begins; `capacity` counts changes. */
export const createRecent = (start: number, capacity: number): Recent => {
  let changes: Change[] = [];
  let floor = start;

  const indexAfter = (version: number): number => {
    let low = 0;
    let high = changes.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if ((changes[middle]?.version ?? 0) <= version) low = middle + 1;
      else high = middle;
    }
    return low;
  };

  return {
    push: (change) => {
      changes.push(change);
      if (changes.length < capacity * 2) return;
      floor = changes[capacity - 1]?.version ?? floor;
      changes = changes.slice(capacity);
    },
    after: (collection, version, limit) => {
      if (version < floor) return undefined;
      const found: Change[] = [];
      for (let index = indexAfter(version); index < changes.length && found.length < limit; index += 1) {
        const change = changes[index];
        if (change?.collection === collection) found.push(change);
      }
      return found;
    },
  };
};
