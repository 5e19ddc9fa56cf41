// What a target holds and who names it. Whatever cannot be read, or seems to be missing, ends the look: it might name anything.
import { type ObservedData, addChunks, chooseChunks, chooseTables } from '#shared/backup/sweep/plan.ts';
import { inParallel, readEntry } from '#shared/backup/look.ts';
import { classify, dataPrefix, metadataPrefix } from '#shared/backup/place.ts';
import type { ListedObject, Store } from '#shared/clients/store/store.ts';
import { InvalidInput, Unavailable } from '#shared/runtime/errors.ts';
import { indexKey, mostTableBytes, parseIndex, sha256Of } from '#shared/transfer/chunks/chunk-index.ts';
import { sweepKey } from '#shared/transfer/chunks/sweeps.ts';
import { type BackupImageObject, imageTypes, readImage } from '#shared/backup/image.ts';
import type { KubeClient } from '#shared/clients/kube/client.ts';

/** What this cluster knows to be in the target. */
export interface OwnBackups {
  /** Of metadata. */
  readonly keys: ReadonlySet<string>;
  readonly disks: ReadonlySet<string>;
}

/** Keys that were just written, which a listing that is whole must end with. Left out where nothing is to be written. */
export interface Marks {
  readonly metadata: string;
  readonly data: string;
}

export interface Garbage {
  readonly tables: readonly ListedObject[];
  readonly chunks: readonly ListedObject[];
  /** Disks that stay. */
  readonly staying: number;
}

const listAll = async (store: Store, prefix: string, last: string | undefined): Promise<readonly ListedObject[]> => {
  const listed = await Array.fromAsync(store.list(prefix));
  if (last !== undefined && listed.at(-1)?.key !== last)
    throw new Unavailable(
      `the listing of ${prefix} is not whole: ${last}, which was just written, is not its last key`,
    );
  return listed;
};

const namedBy = async (store: Store, listed: readonly ListedObject[]): Promise<Set<string>> => {
  const documents = listed.map(({ key }) => classify(key)).filter(({ is }) => is === 'metadata');
  const entries = await inParallel(documents, (one) => readEntry(store, one));
  const named = new Set<string>();
  for (const { key, metadata, problem, isPassing } of entries) {
    if (metadata?.data.kept === 'chunks') named.add(metadata.data.disk);
    const message = `${key} cannot be read, and may name any disk: ${problem ?? ''}`;
    if (metadata === undefined)
      throw isPassing ? new Unavailable(message) : new InvalidInput(`${message}; mend or remove it`);
  }
  return named;
};

/** What sweeps themselves leave there counts on neither side. */
const checkNamed = (metadata: readonly ListedObject[], listed: readonly ListedObject[]): void => {
  const isEmpty = metadata.every(({ key }) => classify(key).is === 'mark');
  if (isEmpty && listed.some(({ key }) => key !== sweepKey(dataPrefix)))
    throw new Unavailable(
      `the listing of ${metadataPrefix} is empty, which is not believed where there are disks: look at the target, and remove what is below ${dataPrefix} by hand if it is not needed`,
    );
};

const checkOwn = (listed: readonly ListedObject[], { keys }: OwnBackups): void => {
  const there = new Set(listed.map(({ key }) => key));
  for (const key of keys)
    if (!there.has(key))
      throw new Unavailable(
        `the listing does not hold ${key}, which an image of this cluster is kept as: try again within the hour`,
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
        `the table of chunks at ${key} is damaged, and may name any chunk: remove it, or restore it`,
      );
    addChunks(needed, table);
  });
  return needed;
};

/**
 * `ownBackups` is asked once metadata is listed: an image that goes meanwhile is then missing on neither side. `now`: by the clock of the store where
 * `marks` are left out; else the time of the mark counts.
 */
export const lookForGarbage = async (
  store: Store,
  ownBackups: () => Promise<OwnBackups>,
  { marks, now }: { readonly marks?: Marks; readonly now: number },
): Promise<Garbage> => {
  // Nobody names anything anew meanwhile. Whoever takes a name away makes its table young first: observed without a name, it is observed young.
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

/** What this cluster has in a target, by what its images say: none of it goes in a sweep, whatever a listing says. */
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
