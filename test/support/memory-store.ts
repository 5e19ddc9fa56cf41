// A store in memory, whose faults, clock and listings a test controls.
import { createHash } from 'node:crypto';
import type { Store } from '#shared/clients/store/store.ts';
import { Conflict, InvalidInput } from '#shared/runtime/errors.ts';
import { testTime } from '#test/support/builders.ts';

/** The error of a call of the store, if any. */
type Fault = (verb: keyof Store, key: string) => Error | undefined;

export interface MemoryStore extends Store {
  readonly objects: Map<string, Buffer>;
  readonly calls: string[];
  /** Called before each call; a returned error is thrown. */
  fault: Fault;
  /** While set, listings are empty. */
  isBlind: boolean;
  /** Milliseconds since the epoch, by the store's own clock: the time of writes. */
  clock: number;
  /** Write times of `objects`; entries set by a test have the epoch. */
  readonly times: Map<string, number>;
}

const revisionOf = (bytes: Uint8Array): string => createHash('sha256').update(bytes).digest('hex').slice(0, 16);

export const createMemoryStore = (): MemoryStore => {
  const objects = new Map<string, Buffer>();
  const ask = (verb: keyof Store, key: string): void => {
    store.calls.push(`${verb} ${key}`);
    const error = store.fault(verb, key);
    if (error !== undefined) throw error;
  };
  const store: MemoryStore = {
    objects,
    calls: [],
    fault: () => undefined,
    isBlind: false,
    clock: testTime,
    times: new Map(),
    read: async (key, mostBytes) => {
      ask('read', key);
      const bytes = objects.get(key);
      if (bytes !== undefined && bytes.length > mostBytes) throw new InvalidInput(`${key} is too large`);
      return bytes === undefined ? undefined : { bytes, revision: revisionOf(bytes) };
    },
    sizeOf: async (key) => {
      ask('sizeOf', key);
      return objects.get(key)?.length;
    },
    write: async (key, bytes, expected) => {
      ask('write', key);
      const present = objects.get(key);
      const isAsExpected =
        expected === undefined ||
        (expected === 'nothing'
          ? present === undefined
          : present !== undefined && revisionOf(present) === expected.revision);
      if (!isAsExpected) throw new Conflict(`${key} is another one`);
      objects.set(key, Buffer.from(bytes));
      store.times.set(key, store.clock);
      return revisionOf(bytes);
    },
    remove: async (key) => {
      ask('remove', key);
      objects.delete(key);
      store.times.delete(key);
    },
    list: async function* list(prefix) {
      ask('list', prefix);
      const keys = store.isBlind ? [] : [...objects.keys()].filter((key) => key.startsWith(prefix));
      for (const key of keys.toSorted())
        yield { key, size: objects.get(key)?.length ?? 0, modified: store.times.get(key) ?? 0 };
    },
  };
  return store;
};
