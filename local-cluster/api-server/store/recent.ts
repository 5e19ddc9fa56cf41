// The newest changes in memory, so that a thousand watches read nothing from disk. Older ones are read from the database.
import type { Change } from './change.ts';

export interface Recent {
  readonly push: (change: Change) => void;
  /** Changes after `version`, or undefined when memory does not contain all of them. */
  readonly after: (collection: string, version: number, limit: number) => Change[] | undefined;
}

/** What is kept after an eviction; twice as much is kept before the next one. */
export interface Capacity {
  readonly changes: number;
  /** Characters of the states in them: a few large objects must not fill the memory. */
  readonly characters: number;
}

/** `start` is the version at which memory starts. */
export const createRecent = (start: number, capacity: Capacity): Recent => {
  let changes: Change[] = [];
  let characters = 0;
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

  /** Evicts the oldest until the rest is within the limit. */
  const clear = (): void => {
    let from = changes.length;
    let left = capacity.characters;
    while (from > 0 && changes.length - from < capacity.changes && left >= 0) {
      from -= 1;
      left -= changes[from]?.size ?? 0;
    }
    if (left < 0) from += 1;
    floor = changes[from - 1]?.version ?? floor;
    changes = changes.slice(from);
    characters = changes.reduce((sum, change) => sum + change.size, 0);
  };

  return {
    push: (change) => {
      changes.push(change);
      characters += change.size;
      if (changes.length >= capacity.changes * 2 || characters >= capacity.characters * 2) clear();
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
