// An image that is being deleted: the deletion is first recorded locally, then the finalizer is removed, then the deletion is recorded in the
// target. The deletion never waits for a target.
import { finalizers } from '#shared/api/names.ts';
import { clusterOf, isLost } from '#shared/backup/clusters.ts';
import { stopData } from '#shared/backup/data.ts';
import type { BackupDeps } from './settings.ts';
import type { BackedImage } from '#shared/backup/image.ts';
import { type Deleted, readMemory, remember } from '#shared/backup/memory.ts';
import { parseTombstone, serializeTombstone, shortHashOf } from '#shared/backup/metadata.ts';
import { metadataKeys, tombstoneKey } from '#shared/backup/place.ts';
import { mostMetadataBytes, readRemote } from '#shared/backup/remote.ts';
import type { ReadTarget, BackupTarget } from '#shared/backup/target.ts';
import { keepForAWhile } from '#shared/backup/sweep/plan.ts';
import { isoTime } from '#shared/populate/state.ts';
import { type Store, isTaken } from '#shared/clients/store/store.ts';
import { AppError } from '#shared/runtime/errors.ts';
import { type Outcome, done } from '#shared/runtime/outcome.ts';

/**
 * The entries that a target may have for an image. Metadata is written before the status that names it: where the status names no target, or
 * another than the one that is set, any target may have one, which is then searched for.
 */
const deletedOf = ({ object, image, restored }: BackedImage, read: ReadTarget): Deleted => {
  const { backup } = object.status ?? {};
  const { apiVersion, kind, uid, namespace = 'default', name } = image.ref;
  const uids = restored === undefined ? [uid] : [uid, restored.uid];
  const last = backup?.target ?? restored?.target;
  const from = restored !== undefined && restored.target === last ? restored.object : undefined;
  const one = { uids, apiVersion, kind, namespace, name, from, isNoted: false };
  const isElsewhere = read.is === 'set' && read.target.name !== last;
  return isElsewhere ? one : { ...one, target: last, object: backup?.object };
};

export const removeBackup = async (deps: BackupDeps, backed: BackedImage, read: ReadTarget): Promise<Outcome> => {
  if (!backed.isHeld) return done;
  await stopData(deps, backed);
  const deleted = deletedOf(backed, read);
  await remember(deps, (memory) => ({ ...memory, deleted: [...without(memory.deleted, deleted), deleted] }));
  await noteDeletions(deps, read);
  await release(deps, backed);
  return done;
};

const isSame = (a: Deleted, b: Deleted): boolean => a.uids[0] === b.uids[0];
const without = (list: readonly Deleted[], one: Deleted): Deleted[] => list.filter((other) => !isSame(other, one));

const release = async ({ kube }: BackupDeps, { type, object }: BackedImage): Promise<void> => {
  const { namespace, name, resourceVersion, finalizers: held = [] } = object.metadata;
  const left = held.filter((finalizer) => finalizer !== finalizers.backup);
  await kube.mergePatch(type, { namespace, name }, { metadata: { resourceVersion, finalizers: left } });
};

/** Whether to stop: a target that does not answer is not tried again for each deletion. */
const isGivenUp = ({ log }: BackupDeps, { name }: BackupTarget, error: unknown): boolean => {
  if (!(error instanceof AppError)) throw error;
  log.warn('deletion not noted in the backup target', { target: name, error: error.message });
  return error.retryable;
};

/** A failure for one entry does not affect the others. Returns the updated entries. */
const noteEach = async (
  deps: BackupDeps,
  target: BackupTarget,
  store: Store,
  due: readonly Deleted[],
): Promise<Deleted[]> => {
  const cluster = await clusterOf(deps.kube);
  const noted: Deleted[] = [];
  for (const one of due) {
    try {
      const inOne = one.target === undefined ? { notedIn: [...new Set([...(one.notedIn ?? []), target.name])] } : {};
      noted.push({ ...(await note({ deps, store, cluster }, one)), ...inOne });
    } catch (error) {
      if (isGivenUp(deps, target, error)) break;
    }
  }
  return noted;
};

const noteAll = async (
  deps: BackupDeps,
  target: BackupTarget,
  due: readonly Deleted[],
): Promise<readonly Deleted[]> => {
  try {
    const { store, close } = deps.open(target);
    try {
      return await noteEach(deps, target, store, due);
    } finally {
      await close();
    }
  } catch (error) {
    isGivenUp(deps, target, error);
    return [];
  }
};

const isKnownTo = ({ target, notedIn = [], isNoted }: Deleted, name: string): boolean =>
  target === undefined ? notedIn.includes(name) : isNoted;

/** Entries of other clusters are checked each hour. */
const isDue = (deleted: Deleted, name: string, now: number): boolean => {
  const { target = name, left, uids } = deleted;
  if (target !== name) return false;
  return !isKnownTo(deleted, name) || (left !== undefined && isItsMinute(uids[0] ?? '', now));
};

/**
 * Records pending deletions in their target. Deletions of another target, or none, are skipped; if the target does not answer, they are
 * recorded later.
 */
export const noteDeletions = async (deps: BackupDeps, read: ReadTarget): Promise<void> => {
  if (read.is !== 'set') return;
  const { target } = read;
  const { deleted } = await readMemory(deps);
  const due = deleted.filter((one) => isDue(one, target.name, deps.now()));
  if (due.length === 0) return;
  const noted = await noteAll(deps, target, due);
  if (noted.length === 0) return;
  await remember(deps, (memory) => ({
    ...memory,
    deleted: memory.deleted.map((one) => noted.find((other) => isSame(one, other)) ?? one),
  }));
};

const maxRounds = 4;
/** Of images that had the same name one after the other: the newest ones. */
export const mostUids = 100;

interface Noting {
  readonly deps: BackupDeps;
  readonly store: Store;
  readonly cluster: string;
}

/** The record comes first: metadata that still exists is then not restored. */
const note = async (noting: Noting, deleted: Deleted): Promise<Deleted> => {
  const { deps, store, cluster } = noting;
  await writeTombstone(store, deleted, cluster);
  const own = deleted.object === undefined ? metadataKeys({ ...deleted, cluster }) : [deleted.object];
  const since = deleted.left ?? isoTime(deps.now());
  let left: string | undefined;
  for (const key of new Set([...own, ...(deleted.from === undefined ? [] : [deleted.from])]))
    if (!(await takeAway(noting, key, deleted, since))) left = since;
  return { ...deleted, isNoted: true, left };
};

/** Returns whether nothing of the image is left at this key: an entry of another cluster belongs to it as long as that cluster lives. */
const takeAway = async (
  { deps, store, cluster }: Noting,
  key: string,
  deleted: Deleted,
  since: string,
): Promise<boolean> => {
  const { metadata } = await readRemote(store, key);
  // Metadata of another image with the same name is not removed.
  if (metadata === undefined || !deleted.uids.includes(metadata.image.uid)) return true;
  const { image, data } = metadata;
  if (image.cluster !== cluster && !(await isLost(deps, store, image.cluster, Date.parse(since)))) return false;
  if (data.kept === 'chunks') await keepForAWhile(store, data.disk);
  await store.remove(key);
  return true;
};

export const writeTombstone = async (store: Store, deleted: Deleted, cluster: string): Promise<void> => {
  const { apiVersion, kind, namespace, name } = deleted;
  const key = tombstoneKey({ apiVersion, kind, namespace, name, cluster });
  for (let round = 1; ; round += 1) {
    const present = await store.read(key, mostMetadataBytes);
    const parsed = present === undefined ? undefined : parseTombstone(present.bytes);
    const known = parsed !== undefined && 'value' in parsed ? parsed.value.deleted.uids : [];
    if (deleted.uids.every((uid) => known.includes(uid))) return;
    const uids = [...new Set([...known, ...deleted.uids])].slice(-mostUids);
    const tombstone = serializeTombstone({ version: 1, deleted: { cluster, namespace, name, uids } });
    try {
      await store.write(key, tombstone, present === undefined ? 'nothing' : { revision: present.revision });
      return;
    } catch (error) {
      if (!isTaken(error) || round === maxRounds) throw error;
    }
  }
};

/** Hourly work is spread over the minutes of the hour. */
const minutesOfHour = 60;

/**
 * Whether this is the minute of the hour in which the image is compared with the target although nothing seems to have changed: another cluster
 * that wrote the same metadata first may have deleted its image, or a user may have deleted it by hand.
 */
export const isItsMinute = (uid: string, now: number): boolean =>
  Number.parseInt(shortHashOf(uid), 16) % minutesOfHour === Math.floor(now / 60_000) % minutesOfHour;
