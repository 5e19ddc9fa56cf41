// One pass over a target: all entries, or only those not restored yet. Records the results. Called by the tick.
import { isTrue } from '#shared/api/conditions.ts';
import { clusterOf } from '#shared/backup/clusters.ts';
import type { BackupDeps } from './settings.ts';
import { imageTypes, readImage } from '#shared/backup/image.ts';
import {
  type Look,
  inParallel,
  isNotedAsDeleted,
  lookThrough,
  readEntry,
  readTombstones,
} from '#shared/backup/look.ts';
import { type Item, type Memory, remember } from '#shared/backup/memory.ts';
import { type ImageMetadata, shortHashOf } from '#shared/backup/metadata.ts';
import { classify, tombstoneKey } from '#shared/backup/place.ts';
import { writeTombstone } from '#shared/backup/removal.ts';
import { type Judged, type RestoreContext, restoreEntry } from '#shared/backup/restore.ts';
import { restoreWord } from '#shared/backup/restore-plan.ts';
import { conflictCondition, reportBackup } from '#shared/backup/report.ts';
import type { BackupTarget } from '#shared/backup/target.ts';
import { isoTime } from '#shared/populate/state.ts';
import type { Store } from '#shared/clients/store/store.ts';
import { recordNote } from '#shared/resources/write.ts';
import { AppError } from '#shared/runtime/errors.ts';

export interface RestorePass {
  readonly deps: BackupDeps;
  readonly target: BackupTarget;
  readonly memory: Memory;
  readonly signal: AbortSignal;
  /** All entries; otherwise only those not restored yet. */
  readonly isWhole: boolean;
}

const itemOf = (key: string, judged: Judged): Item => ({
  object: key,
  ...(judged.is === 'unreadable' ? {} : { image: restoreWord(judged.metadata) }),
  result: judged.is === 'waiting' ? judged.reason : judged.is,
  message: judged.message.slice(0, 500),
});

const isPending = (judged: Judged): boolean =>
  judged.is === 'waiting' || judged.is === 'conflict' || (judged.is === 'unreadable' && judged.isPassing);

/**
 * If the cluster had another target when the image was deleted, this target still has it: the deletion is recorded here too, so that no other
 * cluster restores it.
 */
const noteHere = async (context: RestoreContext, metadata: ImageMetadata): Promise<void> => {
  const { deps, store, cluster, tombstones, deleted } = context;
  const known = deleted.find(({ uids }) => uids.includes(metadata.image.uid));
  if (known === undefined || isNotedAsDeleted(tombstones, metadata, cluster)) return;
  await logFailure(deps, 'deletions', () => writeTombstone(store, known, cluster));
};

/** Reported as an Event in the namespace of the image, once per reason: there is no image with a status yet. */
const reportPending = async (
  { deps }: RestoreContext,
  judged: Judged,
  item: Item,
  known: readonly Item[],
): Promise<void> => {
  const isKnown = known.some(({ object, message }) => object === item.object && message === item.message);
  if (isKnown || judged.is === 'unreadable') return;
  const { result, message } = item;
  const reason = result === 'conflict' ? conflictCondition : result;
  const { cluster: _, ...ref } = judged.metadata.image;
  await recordNote(deps, ref, { type: 'Warning', reason, message, occurrence: shortHashOf(`${result} ${message}`) });
};

interface Came {
  readonly pending: readonly Item[];
  /** UIDs of images that prevent the restore of an entry. */
  readonly holders: ReadonlySet<string>;
}

const restoreAll = async (
  context: RestoreContext,
  { entries }: Look,
  { memory, signal }: RestorePass,
): Promise<Came> => {
  const pending: Item[] = [];
  const holders = new Set<string>();
  for (const entry of entries) {
    signal.throwIfAborted();
    const judged = await restoreEntry(context, entry);
    const item = itemOf(entry.key, judged);
    if (judged.is === 'unreadable') context.deps.log.warn('entry of the backup target not used', { ...item });
    if (judged.is === 'deleted') await noteHere(context, judged.metadata);
    if (judged.is === 'conflict' && judged.holder !== undefined) holders.add(judged.holder.image.ref.uid);
    if (!isPending(judged)) continue;
    await reportPending(context, judged, item, memory.pending);
    pending.push(item);
  }
  return { pending, holders };
};

/** Images that no longer prevent the restore of an entry. */
const clearConflicts = async (deps: BackupDeps, holders: ReadonlySet<string>): Promise<void> => {
  for (const type of imageTypes) {
    for await (const object of deps.kube.listAll(type)) {
      const backed = readImage(type, object);
      if (backed === undefined || holders.has(backed.image.ref.uid)) continue;
      if (!isTrue(object.status?.conditions, conflictCondition)) continue;
      const message = 'this image no longer prevents a restore from the backup target';
      const condition = { type: conflictCondition, status: 'False', reason: 'Resolved', message } as const;
      await reportBackup(deps, backed, { conditions: [condition] });
    }
  }
};

/** Local deletions are in the record; the entry's own cluster may have recorded a deletion without having removed the metadata yet. */
const recheck = async (store: Store, { pending }: Memory): Promise<Look> => {
  const entries = await inParallel(pending, ({ object }) => readEntry(store, classify(object)));
  const notes = entries.flatMap(({ metadata }) => (metadata === undefined ? [] : [tombstoneKey(metadata.image)]));
  return { entries, tombstones: await readTombstones(store, notes), isEmpty: false };
};

/** Number of consecutive empty scans, including this one. */
const emptyLooksOf = ({ target, memory }: RestorePass, { isEmpty }: Look): number =>
  isEmpty ? (memory.target === target.name ? memory.emptyLooks : 0) + 1 : 0;

/** Throws errors of the target if it cannot be listed completely; then nothing is recorded. */
export const lookAtTarget = async (pass: RestorePass): Promise<void> => {
  const { deps, target, memory, isWhole } = pass;
  const { store, close } = deps.open(target);
  try {
    const look = isWhole ? await lookThrough(store) : await recheck(store, memory);
    const cluster = await clusterOf(deps.kube);
    const context = { deps, target, store, cluster, tombstones: look.tombstones, deleted: memory.deleted };
    const { pending, holders } = await restoreAll(context, look, pass);
    if (memory.pending.some(({ result }) => result === 'conflict')) await clearConflicts(deps, holders);
    const time = isoTime(deps.now());
    const looked = isWhole ? { target: target.name, looked: time, emptyLooks: emptyLooksOf(pass, look) } : {};
    await remember(deps, (now) => ({ ...now, ...looked, pending: [...pending] }));
  } finally {
    await close();
  }
};

// A failure of one entry does not affect the others.

/** Errors of the API or the target are logged; the next tick retries. */
export const logFailure = async (
  { log }: Pick<BackupDeps, 'log'>,
  what: string,
  work: () => Promise<unknown>,
): Promise<void> => {
  try {
    await work();
  } catch (error) {
    if (!(error instanceof AppError)) throw error;
    log.warn('backup not advanced', { what, error: error.message });
  }
};
