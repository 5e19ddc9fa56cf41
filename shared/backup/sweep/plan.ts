// Finds disks and chunks of a target that are not referenced any more. Pure.
import { dataPrefix } from '#shared/backup/place.ts';
import type { ListedObject, Store } from '#shared/clients/store/store.ts';
import { type ChunkIndex, chunkKey, indexKey, mostTableBytes } from '#shared/transfer/chunks/chunk-index.ts';
import { describeSweep, isQuiet, isSameSweep, readSweeps } from '#shared/transfer/chunks/sweeps.ts';

// Operations that must not overlap with sweeps: writes that rely on existing content of a target, and disks that lose a reference.

type Guarded<T> = { readonly is: 'sound'; readonly value: T } | { readonly is: 'swept'; readonly message: string };

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

/** Milliseconds for which new objects are kept: a running backup has chunks without a table, and a table without metadata. */
export const graceMs = 7 * 24 * 3_600_000;

export interface ObservedData {
  /** All objects below the data prefix. */
  readonly listed: readonly ListedObject[];
  /** Disks that any metadata refers to. */
  readonly named: ReadonlySet<string>;
  /** Milliseconds since the epoch, by the clock of the store. */
  readonly now: number;
}

const diskOf = (key: string): string | undefined => {
  const disk = key.slice(dataPrefix.length).match(/^disks\/([0-9a-f]{64})$/)?.[1];
  return disk !== undefined && indexKey(dataPrefix, disk) === key ? disk : undefined;
};

const chunkOf = (key: string): string | undefined => {
  const chunk = key.slice(dataPrefix.length).match(/^chunks\/[0-9a-f]{2}\/([0-9a-f]{64})$/)?.[1];
  return chunk !== undefined && chunkKey(dataPrefix, chunk) === key ? chunk : undefined;
};

const isOld = ({ modified }: ListedObject, now: number): boolean => modified + graceMs <= now;

interface TableChoice {
  readonly going: readonly ListedObject[];
  /** Digests of the disks to keep. */
  readonly staying: readonly string[];
}

export const chooseTables = ({ listed, named, now }: ObservedData): TableChoice => {
  const tables = listed.flatMap((object) => {
    const disk = diskOf(object.key);
    return disk === undefined ? [] : [{ object, disk, isGoing: !named.has(disk) && isOld(object, now) }];
  });
  return {
    going: tables.filter(({ isGoing }) => isGoing).map(({ object }) => object),
    staying: tables.filter(({ isGoing }) => !isGoing).map(({ disk }) => disk),
  };
};

/** `needed`: chunks of tables that are kept. Objects that are not chunks are ignored. */
export const chooseChunks = ({ listed, now }: ObservedData, needed: ReadonlySet<string>): readonly ListedObject[] =>
  listed.filter((object) => {
    const chunk = chunkOf(object.key);
    return chunk !== undefined && !needed.has(chunk) && isOld(object, now);
  });

export const addChunks = (needed: Set<string>, { chunks }: ChunkIndex): void => {
  for (const chunk of chunks) if (chunk !== null) needed.add(chunk);
};
