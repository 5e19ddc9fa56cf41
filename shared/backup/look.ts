// What a target holds: every entry with its metadata, or the reason why it has none. One entry's trouble stops no other.
import { type ImageMetadata, parseMetadata, parseReleased, parseTombstone } from '#shared/backup/metadata.ts';
import { type ClassifiedKey, classify, metadataPrefix } from '#shared/backup/place.ts';
import { mostMetadataBytes } from '#shared/backup/remote.ts';
import type { Store } from '#shared/clients/store/store.ts';
import { AppError } from '#shared/runtime/errors.ts';

export interface Entry {
  readonly key: string;
  readonly metadata?: ImageMetadata | undefined;
  /** Why it cannot be used. */
  readonly problem?: string | undefined;
  /** It could not be read now: looked at again. */
  readonly isPassing?: boolean | undefined;
}

/** UIDs of deleted images, by the cluster that says so. */
export type Tombstones = ReadonlyMap<string, ReadonlySet<string>>;

export interface Look {
  readonly entries: readonly Entry[];
  readonly tombstones: Tombstones;
  /** Nothing at all was listed, which a store that is ill says, too. */
  readonly isEmpty: boolean;
}

/** Objects that are read at a time. */
const readers = 8;

/** Throws what was thrown first, once nothing is at work any more: no more is begun then. */
export const inParallel = async <T, R>(items: readonly T[], work: (item: T) => Promise<R>): Promise<readonly R[]> => {
  const results = new Map<number, R>();
  const faults: unknown[] = [];
  let next = 0;
  const reader = async (): Promise<void> => {
    try {
      for (let at = next++; at < items.length && faults.length === 0; at = next++)
        results.set(at, await work(items[at] as T));
    } catch (error) {
      faults.push(error);
    }
  };
  await Promise.all(Array.from({ length: readers }, reader));
  if (faults.length > 0) throw faults[0];
  return items.map((_, at) => results.get(at) as R);
};

export const readEntry = async (store: Store, { is, key }: ClassifiedKey): Promise<Entry> => {
  if (is === 'other') return { key, problem: 'no metadata of an image has such a name' };
  try {
    const found = await store.read(key, mostMetadataBytes);
    if (found === undefined) return { key, problem: 'it is gone again' };
    const parsed = is === 'released' ? parseReleased(found.bytes) : parseMetadata(found.bytes);
    return 'value' in parsed ? { key, metadata: parsed.value } : { key, problem: parsed.problem };
  } catch (error) {
    if (!(error instanceof AppError)) throw error;
    return { key, problem: error.message, isPassing: error.retryable };
  }
};

export const readTombstones = async (store: Store, keys: readonly string[]): Promise<Tombstones> => {
  const found = new Map<string, Set<string>>();
  await inParallel(keys, async (key) => {
    const stored = await store.read(key, mostMetadataBytes);
    const parsed = stored === undefined ? undefined : parseTombstone(stored.bytes);
    if (parsed === undefined || 'problem' in parsed) return;
    const { cluster, uids } = parsed.value.deleted;
    const known = found.get(cluster) ?? new Set();
    for (const uid of uids) known.add(uid);
    found.set(cluster, known);
  });
  return found;
};

/** Throws what the store throws where it cannot be listed to its end. */
export const lookThrough = async (store: Store): Promise<Look> => {
  const listed: ClassifiedKey[] = [];
  for await (const { key } of store.list(metadataPrefix)) listed.push(classify(key));
  const tombstones = await readTombstones(
    store,
    listed.filter(({ is }) => is === 'tombstone').map(({ key }) => key),
  );
  const entries = await inParallel(
    listed.filter(({ is }) => is !== 'tombstone' && is !== 'mark'),
    (one) => readEntry(store, one),
  );
  return { entries, tombstones, isEmpty: listed.length === 0 };
};

/** What this cluster said, or the one whose image it was. Another one's deletions are its own affair. */
export const isNotedAsDeleted = (tombstones: Tombstones, { image }: ImageMetadata, cluster: string): boolean =>
  [cluster, image.cluster].some((who) => tombstones.get(who)?.has(image.uid) ?? false);
