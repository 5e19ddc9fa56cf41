// What sweeps must not cut across: writes that rest on what a target holds already, and disks that lose a name.
import { dataPrefix } from '#shared/backup/place.ts';
import type { Store } from '#shared/clients/store/store.ts';
import { describeSweep, isQuiet, isSameSweep, readSweeps } from '#shared/transfer/chunks/sweeps.ts';
import { indexKey, mostTableBytes } from '#shared/transfer/chunks/chunk-index.ts';

export type Guarded<T> =
  | { readonly is: 'sound'; readonly value: T }
  | { readonly is: 'swept'; readonly message: string };

/** `work` must be short: a sweep is announced longer before it begins. After `swept` it is to be done again from its start. */
export const outsideSweeps = async <T>(store: Store, now: number, work: () => Promise<T>): Promise<Guarded<T>> => {
  const before = await readSweeps(store, dataPrefix);
  if (!isQuiet(before, now)) return { is: 'swept', message: describeSweep(before, dataPrefix) };
  const value = await work();
  const after = await readSweeps(store, dataPrefix);
  return isSameSweep(before, after)
    ? { is: 'sound', value }
    : { is: 'swept', message: describeSweep(after, dataPrefix) };
};

// A disk that loses a name stays as long as one that is new: somebody may be restoring it, or may have trusted in that name.

/** What a sweep spares is told by the time of its table. */
export const keepForAWhile = async (store: Store, disk: string): Promise<void> => {
  const key = indexKey(dataPrefix, disk);
  const table = await store.read(key, mostTableBytes);
  if (table !== undefined) await store.write(key, table.bytes);
};
