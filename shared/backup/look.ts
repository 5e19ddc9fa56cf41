// Lists a target: every entry with its metadata, or the reason why it has none. A broken entry does not affect the others.
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
  /** It could not be read this time: retried. */
  readonly isPassing?: boolean | undefined;
}

/** UIDs of deleted images, by the cluster that recorded the deletion. */
export type Tombstones = ReadonlyMap<string, ReadonlySet<string>>;

export interface Look {
  readonly entries: readonly Entry[];
  readonly tombstones: Tombstones;
  /** The list was empty, which a faulty store reports too. */
  readonly isEmpty: boolean;
}

/** Concurrent reads. */
const readers = 8;

/** After an error no more work is started; throws the first error when all running work has ended. */
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

/** Throws errors of the store if it cannot be listed completely. */
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

/** Recorded by this cluster, or by the cluster of the image. Deletions in other clusters do not apply here. */
export const isNotedAsDeleted = (tombstones: Tombstones, { image }: ImageMetadata, cluster: string): boolean =>
  [cluster, image.cluster].some((who) => tombstones.get(who)?.has(image.uid) ?? false);
