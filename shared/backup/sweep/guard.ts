// Operations that must not overlap with sweeps: writes that rely on existing content of a target, and disks that lose a reference.
import { dataPrefix } from '#shared/backup/place.ts';
import type { Store } from '#shared/clients/store/store.ts';
import { describeSweep, isQuiet, isSameSweep, readSweeps } from '#shared/transfer/chunks/sweeps.ts';
import { indexKey, mostTableBytes } from '#shared/transfer/chunks/chunk-index.ts';

export type Guarded<T> =
  | { readonly is: 'sound'; readonly value: T }
  | { readonly is: 'swept'; readonly message: string };

/** `work` must be short: a sweep is announced for longer than that before it starts. After `swept` it must be repeated from its start. */
export const outsideSweeps = async <T>(store: Store, now: number, work: () => Promise<T>): Promise<Guarded<T>> => {
  const before = await readSweeps(store, dataPrefix);
  if (!isQuiet(before, now)) return { is: 'swept', message: describeSweep(before, dataPrefix) };
  const value = await work();
  const after = await readSweeps(store, dataPrefix);
  return isSameSweep(before, after)
    ? { is: 'sound', value }
    : { is: 'swept', message: describeSweep(after, dataPrefix) };
};

// A disk that loses a reference is kept as long as a new one: another cluster may be restoring it, or may rely on that reference.

/** A sweep keeps disks with a recent table. */
export const keepForAWhile = async (store: Store, disk: string): Promise<void> => {
  const key = indexKey(dataPrefix, disk);
  const table = await store.read(key, mostTableBytes);
  if (table !== undefined) await store.write(key, table.bytes);
};
