// Runs each minute: records pending deletions in the target, backs up remaining images, and restores entries.
import { findCondition } from '#shared/api/conditions.ts';
import { apiVersionOf } from '#shared/api/object.ts';
import { markImagesOfBackups } from '#shared/backup/asked.ts';
import { clusterOf, sendHeartbeat, wasSilent } from '#shared/backup/clusters.ts';
import type { BackupDeps } from './settings.ts';
import { logFailure, lookAtTarget } from '#shared/backup/restore-pass.ts';
import { isItsMinute, noteDeletions } from '#shared/backup/removal.ts';
import { type BackedImage, imageTypes, readImage } from '#shared/backup/image.ts';
import { inParallel } from '#shared/backup/look.ts';
import { type Memory, readMemory, remember } from '#shared/backup/memory.ts';
import { findTarget } from '#shared/backup/open.ts';
import { dataCondition, metadataCondition } from '#shared/backup/report.ts';
import { hasNews, syncImage } from '#shared/backup/sync.ts';
import type { ReadTarget, BackupTarget } from '#shared/backup/target.ts';
import { type Outcome, done } from '#shared/runtime/outcome.ts';
import { annotations } from '#shared/api/names.ts';
import { isoTime } from '#shared/populate/state.ts';
import { secrets } from '#shared/api/foreign/core.ts';

/** Empty scans after which a target counts as scanned: a faulty target may report an empty list. */
const mostEmptyLooks = 10;

/** Whether to scan the whole target now. */
export const isDue = (memory: Memory, target: BackupTarget, now: number): boolean => {
  if (memory.target !== target.name || memory.looked === undefined) return true;
  if (memory.emptyLooks > 0 && memory.emptyLooks < mostEmptyLooks) return true;
  return target.refreshSeconds > 0 && Date.parse(memory.looked) + target.refreshSeconds * 1000 <= now;
};

/** Whether to compare every image with the target again, not only those without a backup. */
const isRefresh = (memory: Memory, target: BackupTarget, now: number): boolean =>
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
    // Without a target no backup is confirmed.
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

/** If a target does not answer, a tick ends before all images were processed: each minute starts with another one. */
const turned = <T>(items: readonly T[], minute: number): readonly T[] => {
  const first = items.length === 0 ? 0 : (minute * 8) % items.length;
  return [...items.slice(first), ...items.slice(0, first)];
};

/** A target that is removed and configured again is scanned again. */
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
  await logFailure(deps, 'sign of life', () => sendHeartbeat(deps, memory, read.target));
  await logFailure(deps, 'deletions', () => noteDeletions(deps, read));
  const isWhole = isDue(memory, read.target, deps.now());
  if (isWhole || memory.pending.length > 0)
    await logFailure(deps, read.target.name, () =>
      lookAtTarget({ deps, target: read.target, memory, signal, isWhole }),
    );
  return done;
};

// A restored image that failed is retried for as long as it fails: a missing object or a server may be available now.

/** The delay grows with each round of attempts, up to this factor. */
const mostRounds = 32;

/** Milliseconds since the epoch. */
const newest = (...times: readonly (string | undefined)[]): number =>
  Math.max(0, ...times.map((time) => Date.parse(time ?? '')).filter((time) => !Number.isNaN(time)));

const isRestoreDue = ({ image, object, restored }: BackedImage, now: number, retrySeconds: number): boolean => {
  const { state, faults, deleting, retryToken, retries } = image;
  // A fault of its spec cannot be fixed by a retry.
  if (restored === undefined || deleting || state.phase !== 'Failed' || faults.length > 0) return false;
  const rounds = Math.min(mostRounds, Math.max(1, Math.floor(state.failures / (retries + 1))));
  const last = newest(retryToken, state.lastFailureTime, object.metadata.creationTimestamp);
  return now - last >= rounds * retrySeconds * 1000;
};

/** The message of the image names the Secret. */
const lacksSecret = async ({ kube }: BackupDeps, { object, restored }: BackedImage): Promise<boolean> => {
  const name = restored?.from?.type === 's3' ? restored.from.secretName : undefined;
  if (name === undefined) return false;
  return (await kube.get(secrets, { namespace: object.metadata.namespace, name })) === undefined;
};

/** Uses the retry annotation, like a user. */
const retryRestored = async (deps: BackupDeps, backed: BackedImage): Promise<void> => {
  const { type, object } = backed;
  if (!isRestoreDue(backed, deps.now(), deps.retrySeconds) || (await lacksSecret(deps, backed))) return;
  const { namespace, name, resourceVersion } = object.metadata;
  const change = { resourceVersion, annotations: { [annotations.retry]: isoTime(deps.now()) } };
  await deps.kube.mergePatch(type, { namespace, name }, { metadata: change });
  deps.log.info('restore is retried', { image: `${namespace}/${name}`, reason: backed.image.state.reason });
};
