// What happens each minute: deletions the target does not know of, images that are not kept yet, and what is to be restored.
import { findCondition } from '#shared/api/conditions.ts';
import { apiVersionOf } from '#shared/api/object.ts';
import { markImagesOfBackups } from '#shared/backup/asked.ts';
import { clusterOf } from '#shared/backup/cluster.ts';
import type { BackupDeps } from '#shared/backup/deps.ts';
import { type BackedImage, imageTypes, readImage } from '#shared/backup/image.ts';
import { type Look, isNotedAsDeleted, lookThrough } from '#shared/backup/look.ts';
import type { ImageMetadata } from '#shared/backup/metadata.ts';
import { type Item, type Memory, readMemory, remember } from '#shared/backup/memory.ts';
import { findTarget } from '#shared/backup/open.ts';
import { noteDeletions, writeTombstone } from '#shared/backup/removal.ts';
import { type Judged, type RestoreContext, restoreEntry } from '#shared/backup/restore.ts';
import { restoreWord } from '#shared/backup/restore-plan.ts';
import { dataCondition, metadataCondition } from '#shared/backup/say.ts';
import { hasNews, syncImage } from '#shared/backup/sync.ts';
import type { ReadTarget, Target } from '#shared/backup/target.ts';
import { isoTime } from '#shared/backends/state.ts';
import type { Store } from '#shared/clients/store/store.ts';
import { AppError } from '#shared/runtime/errors.ts';
import { type Outcome, done } from '#shared/runtime/outcome.ts';

/** Looks that may find nothing at all before a target counts as looked through: one that is ill may say so. */
const mostEmptyLooks = 10;

/** Whether a target is to be looked through now. */
export const isDue = (memory: Memory, target: Target, now: number): boolean => {
  if (memory.target !== target.name || memory.looked === undefined) return true;
  if (memory.pending.length > 0) return true;
  if (memory.emptyLooks > 0 && memory.emptyLooks < mostEmptyLooks) return true;
  return target.refreshSeconds > 0 && Date.parse(memory.looked) + target.refreshSeconds * 1000 <= now;
};

/** Whether every image is to be held against the target again, and not only those that are not kept. */
const isRefresh = (memory: Memory, target: Target, now: number): boolean =>
  memory.target !== target.name ||
  (target.refreshSeconds > 0 && Date.parse(memory.looked ?? '') + target.refreshSeconds * 1000 <= now);

const itemOf = (key: string, judged: Judged): Item => ({
  object: key,
  ...(judged.is === 'unreadable' ? {} : { image: restoreWord(judged.metadata) }),
  result: judged.is === 'waiting' ? judged.reason : judged.is,
  message: judged.message.slice(0, 500),
});

const isPending = (judged: Judged): boolean =>
  judged.is === 'waiting' || judged.is === 'conflict' || (judged.is === 'unreadable' && judged.isPassing);

const restoreAll = async (
  deps: BackupDeps,
  look: Look,
  opened: { readonly target: Target; readonly store: Store; readonly memory: Memory },
  signal: AbortSignal,
): Promise<readonly Item[]> => {
  const cluster = await clusterOf(deps.kube);
  const context = { deps, ...opened, cluster, tombstones: look.tombstones, deleted: opened.memory.deleted };
  const pending: Item[] = [];
  for (const entry of look.entries) {
    signal.throwIfAborted();
    const judged = await restoreEntry(context, entry);
    if (judged.is === 'unreadable') deps.log.warn('entry of the backup target not used', itemOf(entry.key, judged));
    if (judged.is === 'deleted') await noteHere(context, judged.metadata);
    if (isPending(judged)) pending.push(itemOf(entry.key, judged));
  }
  return pending;
};

/** A target that was another one when the image was deleted holds it still: what is noted there keeps it from coming back elsewhere. */
const noteHere = async (context: RestoreContext, metadata: ImageMetadata): Promise<void> => {
  const { deps, store, cluster, tombstones, deleted } = context;
  const known = deleted.find(({ uids }) => uids.includes(metadata.image.uid));
  if (known === undefined || isNotedAsDeleted(tombstones, metadata, cluster)) return;
  await forgiving(deps, 'deletions', () => writeTombstone(store, known, cluster));
};

const lookAtTarget = async (deps: BackupDeps, target: Target, memory: Memory, signal: AbortSignal): Promise<void> => {
  const { store, close } = deps.open(target);
  try {
    const look = await lookThrough(store);
    const pending = await restoreAll(deps, look, { target, store, memory }, signal);
    const emptyLooks = look.isEmpty ? (memory.target === target.name ? memory.emptyLooks : 0) + 1 : 0;
    const looked = isoTime(deps.now());
    await remember(deps, (now) => ({ ...now, target: target.name, looked, emptyLooks, pending: [...pending] }));
  } finally {
    await close();
  }
};

const isUnsettled = (backed: BackedImage): boolean => {
  const { object, image, isWanted, isHeld } = backed;
  if (image.deleting) return isHeld;
  if (!isWanted) return false;
  const { conditions } = object.status ?? {};
  return [dataCondition, metadataCondition].some((type) => findCondition(conditions, type)?.status !== 'True');
};

const syncAll = async (deps: BackupDeps, read: ReadTarget, isEvery: boolean, signal: AbortSignal): Promise<void> => {
  const cluster = await clusterOf(deps.kube);
  const isDueFor = (backed: BackedImage): boolean =>
    isUnsettled(backed) ||
    // Without a target nothing is vouched for.
    (backed.isWanted && (isEvery || read.is !== 'set' || hasNews(backed, cluster, read.target.name)));
  for (const type of imageTypes) {
    for await (const object of deps.kube.listAll(type)) {
      if (signal.aborted) return;
      const backed = readImage(type, object);
      if (backed === undefined || !isDueFor(backed)) continue;
      const { namespace, name } = object.metadata;
      await forgiving(deps, `image ${namespace}/${name}`, () =>
        syncImage(deps, { apiVersion: apiVersionOf(type), kind: type.kind, namespace, name }, read),
      );
    }
  }
};

/** One's trouble stops no other; the next tick tries again. */
const forgiving = async (deps: BackupDeps, what: string, work: () => Promise<unknown>): Promise<void> => {
  try {
    await work();
  } catch (error) {
    if (!(error instanceof AppError)) throw error;
    deps.log.warn('backup not advanced', { what, error: error.message });
  }
};

/** A target that is cleared and set again is looked through again. */
const forgetTarget = (deps: BackupDeps, memory: Memory): Promise<void> | undefined =>
  memory.target === undefined
    ? undefined
    : remember(deps, (now) => ({ ...now, target: undefined, looked: undefined, emptyLooks: 0, pending: [] }));

export const tickBackups = async (deps: BackupDeps, signal: AbortSignal): Promise<Outcome> => {
  const read = await findTarget(deps.kube);
  await forgiving(deps, 'VM backups', () => markImagesOfBackups(deps));
  const memory = await readMemory(deps);
  const isEvery = read.is === 'set' && isRefresh(memory, read.target, deps.now());
  await forgiving(deps, 'images', () => syncAll(deps, read, isEvery, signal));
  if (read.is === 'faulty') deps.log.warn('backup target is wrong', { error: read.message });
  if (read.is === 'none') await forgetTarget(deps, memory);
  if (read.is !== 'set') return done;
  await forgiving(deps, 'deletions', () => noteDeletions(deps, read));
  if (isDue(memory, read.target, deps.now()))
    await forgiving(deps, read.target.name, () => lookAtTarget(deps, read.target, memory, signal));
  return done;
};
