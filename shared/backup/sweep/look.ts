// Lists a target with all references. Unreadable or apparently missing entries abort the sweep: they might refer to any disk.
import { type ObservedData, addChunks, chooseChunks, chooseTables } from '#shared/backup/sweep/plan.ts';
import { inParallel, readEntry } from '#shared/backup/look.ts';
import { classify, dataPrefix, metadataPrefix } from '#shared/backup/place.ts';
import type { ListedObject, Store } from '#shared/clients/store/store.ts';
import { InvalidInput, Unavailable } from '#shared/runtime/errors.ts';
import { indexKey, mostTableBytes, parseIndex, sha256Of } from '#shared/transfer/chunks/chunk-index.ts';
import { sweepKey } from '#shared/transfer/chunks/sweeps.ts';
import { type BackupImageObject, imageTypes, readImage } from '#shared/backup/image.ts';
import type { KubeClient } from '#shared/clients/kube/client.ts';

/** Entries of this cluster that must be in the target. */
export interface OwnBackups {
  /** Keys of metadata. */
  readonly keys: ReadonlySet<string>;
  readonly disks: ReadonlySet<string>;
}

/** Keys that were just written, and must be the last of a complete listing. Default: nothing may be written. */
export interface Marks {
  readonly metadata: string;
  readonly data: string;
}

export interface Garbage {
  readonly tables: readonly ListedObject[];
  readonly chunks: readonly ListedObject[];
  /** Number of disks to keep. */
  readonly staying: number;
}

const listAll = async (store: Store, prefix: string, last: string | undefined): Promise<readonly ListedObject[]> => {
  const listed = await Array.fromAsync(store.list(prefix));
  if (last !== undefined && listed.at(-1)?.key !== last)
    throw new Unavailable(
      `the listing of ${prefix} is incomplete: ${last}, which was just written, is not its last key`,
    );
  return listed;
};

const namedBy = async (store: Store, listed: readonly ListedObject[]): Promise<Set<string>> => {
  const documents = listed.map(({ key }) => classify(key)).filter(({ is }) => is === 'metadata');
  const entries = await inParallel(documents, (one) => readEntry(store, one));
  const named = new Set<string>();
  for (const { key, metadata, problem, isPassing } of entries) {
    if (metadata?.data.kept === 'chunks') named.add(metadata.data.disk);
    const message = `${key} cannot be read, and may refer to any disk: ${problem ?? ''}`;
    if (metadata === undefined)
      throw isPassing ? new Unavailable(message) : new InvalidInput(`${message}; repair or remove it`);
  }
  return named;
};

/** Marks of sweeps are not counted. */
const checkNamed = (metadata: readonly ListedObject[], listed: readonly ListedObject[]): void => {
  const isEmpty = metadata.every(({ key }) => classify(key).is === 'mark');
  if (isEmpty && listed.some(({ key }) => key !== sweepKey(dataPrefix)))
    throw new Unavailable(
      `the listing of ${metadataPrefix} is empty although there are disks: check the target, and remove the objects below ${dataPrefix} by hand if they are not needed`,
    );
};

const checkOwn = (listed: readonly ListedObject[], { keys }: OwnBackups): void => {
  const there = new Set(listed.map(({ key }) => key));
  for (const key of keys)
    if (!there.has(key))
      throw new Unavailable(
        `the listing does not contain ${key}, the backup of an image of this cluster: try again within the hour`,
      );
};

const neededBy = async (store: Store, staying: readonly string[]): Promise<ReadonlySet<string>> => {
  const needed = new Set<string>();
  await inParallel(staying, async (disk) => {
    const key = indexKey(dataPrefix, disk);
    const found = await store.read(key, mostTableBytes);
    const table = found === undefined || sha256Of(found.bytes) !== disk ? undefined : parseIndex(found.bytes);
    if (table === undefined)
      throw new InvalidInput(
        `the table of chunks at ${key} is damaged, and may refer to any chunk: remove it, or restore it`,
      );
    addChunks(needed, table);
  });
  return needed;
};

/**
 * `ownBackups` is read after metadata was listed: an image that is deleted meanwhile is then missing on both sides. `now`: the clock of the
 * store without `marks`; else the time of the mark is used.
 */
export const lookForGarbage = async (
  store: Store,
  ownBackups: () => Promise<OwnBackups>,
  { marks, now }: { readonly marks?: Marks; readonly now: number },
): Promise<Garbage> => {
  // No reference is added meanwhile. A writer that removes a reference first touches the table: a disk without a reference then has a recent
  // table.
  const metadata = await listAll(store, metadataPrefix, marks?.metadata);
  const named = await namedBy(store, metadata);
  const listed = await listAll(store, dataPrefix, marks?.data);
  checkNamed(metadata, listed);
  const own = await ownBackups();
  checkOwn(metadata, own);
  const observed: ObservedData = {
    listed,
    named: new Set([...named, ...own.disks]),
    now: marks === undefined ? now : (listed.at(-1)?.modified ?? now),
  };
  const { going, staying } = chooseTables(observed);
  return { tables: going, chunks: chooseChunks(observed, await neededBy(store, staying)), staying: staying.length };
};

/** The entries of this cluster in a target, according to its images: a sweep removes none of them, whatever the listing contains. */
const isOf = (of: { readonly target: string } | undefined, targetName: string): boolean => of?.target === targetName;

const keptOf = ({ metadata, status }: BackupImageObject, targetName: string) =>
  isOf(status?.backup, targetName) && metadata.deletionTimestamp === undefined ? status?.backup : undefined;

export const ownBackups = async (kube: KubeClient, targetName: string): Promise<OwnBackups> => {
  const keys = new Set<string | undefined>();
  const disks = new Set<string | undefined>();
  for (const type of imageTypes) {
    for await (const object of kube.listAll(type)) {
      const kept = keptOf(object, targetName);
      const restored = readImage(type, object)?.restored;
      const from = isOf(restored, targetName) ? restored?.from : undefined;
      keys.add(kept?.object);
      disks.add(kept?.disk).add(from?.key.split('/').at(-1));
    }
  }
  const known = (all: ReadonlySet<string | undefined>) => new Set([...all].filter((one) => one !== undefined));
  return { keys: known(keys), disks: known(disks) };
};
