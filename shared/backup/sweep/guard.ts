// What is written into a target because of what is there already: sound only where nobody swept meanwhile.
import { dataPrefix } from '#shared/backup/place.ts';
import type { Store } from '#shared/clients/store/store.ts';
import { describeSweep, isQuiet, isSameSweep, readSweeps } from '#shared/transfer/chunks/sweeps.ts';

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
