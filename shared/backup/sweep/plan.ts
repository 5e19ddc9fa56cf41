// Which disks and chunks of a target nobody needs any more. Pure.
import type { ListedObject } from '#shared/clients/store/store.ts';
import { type ChunkIndex, chunkKey, indexKey } from '#shared/transfer/chunks/chunk-index.ts';
import { dataPrefix } from '#shared/backup/place.ts';

/** Milliseconds that whatever is new is left alone: a backup that is under way has chunks that no table names yet, and a table that no metadata does. */
export const graceMs = 7 * 24 * 3_600_000;

export interface ObservedData {
  /** Everything below the prefix of data. */
  readonly listed: readonly ListedObject[];
  /** Disks that metadata names, whoever wrote it. */
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

export interface TableChoice {
  readonly going: readonly ListedObject[];
  /** Digests that name them: what they name stays. */
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

/** `needed`: by tables that stay. What is no chunk is nobody's business here. */
export const chooseChunks = ({ listed, now }: ObservedData, needed: ReadonlySet<string>): readonly ListedObject[] =>
  listed.filter((object) => {
    const chunk = chunkOf(object.key);
    return chunk !== undefined && !needed.has(chunk) && isOld(object, now);
  });

export const addChunks = (needed: Set<string>, { chunks }: ChunkIndex): void => {
  for (const chunk of chunks) if (chunk !== null) needed.add(chunk);
};
