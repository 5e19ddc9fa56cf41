// What happens each minute: deletions the target does not know of, images that are not kept yet, and what is to be restored.
import { findCondition } from '#shared/api/conditions.ts';
import { apiVersionOf } from '#shared/api/object.ts';
import { markImagesOfBackups } from '#shared/backup/asked.ts';
import { clusterOf } from '#shared/backup/cluster.ts';
import type { BackupDeps } from '#shared/backup/deps.ts';
import { logFailure } from '#shared/backup/log-failure.ts';
import { giveSign, wasSilent } from '#shared/backup/clusters.ts';
import { isItsMinute } from '#shared/backup/hourly.ts';
import { type BackedImage, imageTypes, readImage } from '#shared/backup/image.ts';
import { inParallel } from '#shared/backup/look.ts';
import { type Memory, readMemory, remember } from '#shared/backup/memory.ts';
import { findTarget } from '#shared/backup/open.ts';
import { noteDeletions } from '#shared/backup/removal.ts';
import { lookAtTarget } from '#shared/backup/restore-pass.ts';
import { retryRestored } from '#shared/backup/retry.ts';
import { dataCondition, metadataCondition } from '#shared/backup/say.ts';
import { hasNews, syncImage } from '#shared/backup/sync.ts';
import type { ReadTarget, Target } from '#shared/backup/target.ts';
import { type Outcome, done } from '#shared/runtime/outcome.ts';

/** Looks that may find nothing at all before a target counts as looked through: one that is ill may say so. */
const mostEmptyLooks = 10;

/** Whether a target is to be looked through as a whole now. */
export const isDue = (memory: Memory, target: Target, now: number): boolean => {
  if (memory.target !== target.name || memory.looked === undefined) return true;
  if (memory.emptyLooks > 0 && memory.emptyLooks < mostEmptyLooks) return true;
  return target.refreshSeconds > 0 && Date.parse(memory.looked) + target.refreshSeconds * 1000 <= now;
};

/** Whether every image is to be held against the target again, and not only those that are not kept. */
const isRefresh = (memory: Memory, target: Target, now: number): boolean =>
  memory.target !== target.name ||
  (target.refreshSeconds > 0 && Date.parse(memory.looked ?? '') + target.refreshSeconds * 1000 <= now);

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
    (backed.isWanted &&
      (isEvery ||
        read.is !== 'set' ||
        isItsMinute(backed.image.ref.uid, deps.now()) ||
        hasNews(backed, cluster, read.target.name)));
  const due: BackedImage[] = [];
  for await (const backed of allImages(deps)) {
    const { namespace, name } = backed.object.metadata;
    await logFailure(deps, `restore of ${namespace}/${name}`, () => retryRestored(deps, backed));
    if (isDueFor(backed)) due.push(backed);
  }
  await inParallel(turned(due, Math.floor(deps.now() / 60_000)), async ({ type, object }) => {
    if (signal.aborted) return;
    const { namespace, name } = object.metadata;
    const ref = { apiVersion: apiVersionOf(type), kind: type.kind, namespace, name };
    await logFailure(deps, `image ${namespace}/${name}`, () => syncImage(deps, ref, read));
  });
};

async function* allImages({ kube }: BackupDeps): AsyncGenerator<BackedImage, void, undefined> {
  for (const type of imageTypes) {
    for await (const object of kube.listAll(type)) {
      const backed = readImage(type, object);
      if (backed !== undefined) yield backed;
    }
  }
}

/** Where a target hangs, a tick ends before all had their turn: each minute another one is the first. */
const turned = <T>(items: readonly T[], minute: number): readonly T[] => {
  const first = items.length === 0 ? 0 : (minute * 8) % items.length;
  return [...items.slice(first), ...items.slice(0, first)];
};

/** A target that is cleared and set again is looked through again. */
const forgetTarget = (deps: BackupDeps, memory: Memory): Promise<void> | undefined =>
  memory.target === undefined
    ? undefined
    : remember(deps, (now) => ({ ...now, target: undefined, looked: undefined, emptyLooks: 0, pending: [] }));

export const tickBackups = async (deps: BackupDeps, signal: AbortSignal): Promise<Outcome> => {
  const read = await findTarget(deps.kube);
  await logFailure(deps, 'VM backups', () => markImagesOfBackups(deps));
  const memory = await readMemory(deps);
  const isEvery =
    read.is === 'set' && (isRefresh(memory, read.target, deps.now()) || wasSilent(deps, memory, read.target));
  await logFailure(deps, 'images', () => syncAll(deps, read, isEvery, signal));
  if (read.is === 'faulty') deps.log.warn('backup target is wrong', { error: read.message });
  if (read.is === 'none') await forgetTarget(deps, memory);
  if (read.is !== 'set') return done;
  await logFailure(deps, 'sign of life', () => giveSign(deps, memory, read.target));
  await logFailure(deps, 'deletions', () => noteDeletions(deps, read));
  const isWhole = isDue(memory, read.target, deps.now());
  if (isWhole || memory.pending.length > 0)
    await logFailure(deps, read.target.name, () =>
      lookAtTarget({ deps, target: read.target, memory, signal, isWhole }),
    );
  return done;
};
