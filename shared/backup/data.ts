// Copies the data of an image into a target: decides whether a Job is needed, from the state of the Job or of Longhorn. Planning is pure.
import { type BackupBackingImage, backupBackingImages } from '#shared/api/foreign/backup.ts';
import {
  type Job,
  type PersistentVolumeClaim,
  type Pod,
  jobs,
  persistentVolumeClaims,
  pods,
} from '#shared/api/foreign/core.ts';
import { longhornNamespace } from '#shared/api/foreign/longhorn.ts';
import { annotations } from '#shared/api/names.ts';
import { childrenOf, isOwnedBy } from '#shared/api/object.ts';
import type { BackedImage } from '#shared/backup/image.ts';
import type { BackupDeps } from './settings.ts';
import { placeOf } from '#shared/backup/document.ts';
import { type BackupData, shortHashOf } from '#shared/backup/metadata.ts';
import { dataPrefix } from '#shared/backup/place.ts';
import { describeMissing, missingAccess } from '#shared/backup/secret.ts';
import type { BackupTarget } from '#shared/backup/target.ts';
import { startTransfer } from '#shared/populate/job/start-transfer.ts';
import { registrationOf } from '#shared/backends/registry.ts';
import type { Store } from '#shared/clients/store/store.ts';
import { eachIfServed } from '#shared/clients/kube/tolerant.ts';
import { readTransfer } from '#shared/populate/job/attempts.ts';
import { buildTransferJob, transferJobName } from '#shared/populate/job/transfer-job.ts';
import { volumeModeOf } from '#shared/populate/population.ts';
import { indexKey } from '#shared/transfer/chunks/chunk-index.ts';

export type DataStep =
  | { readonly is: 'kept'; readonly data: BackupData; readonly bytes?: number | undefined }
  /** Another operation is in progress; its end causes an event. */
  | { readonly is: 'waiting'; readonly reason: string; readonly message: string }
  | { readonly is: 'failed'; readonly reason: string; readonly message: string };

/** Attempts beyond the first: a final failure is retried later. */
const retries = 3;

const ofLonghorn = (backingImage: string, { status = {} }: BackupBackingImage): DataStep => {
  const { state = 'not begun', url, checksum, error } = status;
  if (state === 'Completed' && url)
    return { is: 'kept', data: { kept: 'by-storage', url, ...(checksum ? { checksum } : {}) } };
  const message = `Longhorn backs up ${backingImage}: ${state}${error ? `, ${error}` : ''}`;
  return { is: 'waiting', reason: 'BackingUp', message };
};

const findLonghornBackup = async ({ kube }: BackupDeps, backingImage: string): Promise<DataStep> => {
  for await (const found of eachIfServed(kube, backupBackingImages, { namespace: longhornNamespace }))
    if (found.status?.backingImage === backingImage || found.metadata.name === backingImage)
      return ofLonghorn(backingImage, found);
  const message = `Longhorn has no backup of backing image ${backingImage}: back up a volume that is made from it`;
  return { is: 'waiting', reason: 'WaitingForLonghorn', message };
};

/** A table is written after its chunks: if it exists, the backup is complete. */
const isThere = async (store: Store, disk: string): Promise<boolean> =>
  ((await store.sizeOf(indexKey(dataPrefix, disk))) ?? 0) > 0;

/** A golden volume that was lost and filled again may have other content: a record older than the volume does not apply. */
const isOlder = (time: string | undefined, { metadata }: PersistentVolumeClaim): boolean =>
  Date.parse(time ?? '') < Date.parse(metadata.creationTimestamp ?? '');

/** Disks of this image that may already be in the target, according to its status. */
const knownDisks = (
  { object, restored }: BackedImage,
  target: BackupTarget,
  claim: PersistentVolumeClaim | undefined,
): readonly string[] => {
  const { backup } = object.status ?? {};
  const isOwn = backup?.target === target.name && !(claim && isOlder(backup.time, claim));
  const own = isOwn ? backup.disk : undefined;
  const from = restored?.target === target.name ? restored.from?.key.split('/').at(-1) : undefined;
  return [own, from].filter((disk) => disk !== undefined);
};

const targetMark = (target: BackupTarget): string => shortHashOf(target.name);

interface Advance {
  readonly deps: BackupDeps;
  readonly backed: BackedImage;
  readonly target: BackupTarget;
  readonly store: Store;
}

const startJob = async (
  { deps, backed: { image }, target }: Advance,
  claimName: string,
  claim: PersistentVolumeClaim | undefined,
): Promise<DataStep> => {
  if (claim === undefined)
    return { is: 'failed', reason: 'VolumeLost', message: `the golden volume ${claimName} does not exist` };
  // The pod would wait for the volume, and the volume for the pod.
  if (claim.metadata.deletionTimestamp !== undefined)
    return { is: 'failed', reason: 'VolumeLost', message: `the golden volume ${claimName} is being deleted` };
  const missing = await missingAccess(deps, target, image.ref.namespace ?? 'default');
  if (missing !== undefined) return { is: 'waiting', reason: 'SecretMissing', message: describeMissing(missing) };
  const job = buildTransferJob(
    {
      mode: 'backup',
      owner: image.ref,
      source: { type: 'claim', claimName, volumeMode: volumeModeOf(claim) },
      backup: { into: placeOf(target, dataPrefix, deps.secretName) },
      retries,
    },
    deps.settings,
  );
  const marks = { ...job.metadata.annotations, [annotations.backupTarget]: targetMark(target) };
  await startTransfer(deps.kube, { ...job, metadata: { ...job.metadata, annotations: marks } });
  return { is: 'waiting', reason: 'BackingUp', message: `the disk is being copied to ${target.name}` };
};

const removeJob = async ({ kube }: BackupDeps, { metadata }: Job): Promise<void> => {
  const { namespace, name, uid } = metadata;
  if (metadata.deletionTimestamp !== undefined) return;
  await kube.delete(jobs, { namespace, name }, { uid: uid ?? '', propagation: 'Foreground' });
};

/** Milliseconds since the epoch. */
const endedAt = (job: Job): number => {
  const times = (job.status?.conditions ?? []).map(({ lastTransitionTime }) => Date.parse(lastTransitionTime ?? ''));
  return Math.max(0, ...times.filter((time) => !Number.isNaN(time)));
};

const followJob = async (
  deps: BackupDeps,
  job: Job,
  workers: readonly Pod[],
  target: BackupTarget,
): Promise<DataStep> => {
  const run = readTransfer(job, workers, deps.now());
  const attempt =
    run.attempts > 1 ? ` (attempt ${run.attempts} of ${retries + 1}: ${run.lastFault?.message ?? ''})` : '';
  switch (run.is) {
    case 'succeeded': {
      const { backup } = run.report;
      if (backup !== undefined)
        return { is: 'kept', data: { kept: 'chunks', disk: backup.disk }, bytes: backup.sentBytes };
      return { is: 'failed', reason: 'BackupFailed', message: 'the backup Job reported no result' };
    }
    case 'failed': {
      const again = endedAt(job) + deps.retrySeconds * 1000;
      if (again <= deps.now()) await removeJob(deps, job);
      const message = `${run.fault.message}; retrying after ${new Date(again).toISOString()}`;
      return { is: 'failed', reason: run.fault.reason, message };
    }
    case 'waiting': {
      const { hindrance } = run;
      const message = hindrance === undefined ? `the backup is being started${attempt}` : hindrance.message;
      return { is: 'waiting', reason: hindrance?.reason ?? 'BackingUp', message };
    }
    default:
      return { is: 'waiting', reason: 'BackingUp', message: `the disk is being copied to ${target.name}${attempt}` };
  }
};

/** Removes a Job that wrote to another target, read another volume, or whose result is gone. */
const followOwnJob = async (
  { deps, backed, target, store }: Advance,
  job: Job,
  claim: PersistentVolumeClaim | undefined,
): Promise<DataStep> => {
  const { namespace, uid } = backed.image.ref;
  if (!isOwnedBy(job, uid))
    return { is: 'failed', reason: 'NameTaken', message: `Job ${job.metadata.name} belongs to something else` };
  const isOfVolume = !(claim && isOlder(job.metadata.creationTimestamp, claim));
  if (isOfVolume && job.metadata.annotations?.[annotations.backupTarget] === targetMark(target)) {
    const workers = (await deps.kube.list(pods, { namespace, labelSelector: childrenOf(uid) })).items;
    const step = await followJob(deps, job, workers, target);
    const isGone = step.is === 'kept' && step.data.kept === 'chunks' && !(await isThere(store, step.data.disk));
    if (!isGone) return step;
  }
  await removeJob(deps, job);
  return { is: 'waiting', reason: 'BackingUp', message: 'removing an earlier backup Job' };
};

/** Observes the state and takes one step. Throws errors of the API and the store. */
export const advanceData = async (advance: Advance): Promise<DataStep> => {
  const { deps, backed, target, store } = advance;
  const { image } = backed;
  const registration = registrationOf(deps.backends, image.backend);
  if (!registration.served) return { is: 'failed', reason: 'BackendNotServed', message: registration.because };
  const disk = registration.backend.rootDiskOf(image);
  if (disk.is === 'class') return findLonghornBackup(deps, image.state.children?.backingImage ?? '');
  const claim = await deps.kube.get(persistentVolumeClaims, { namespace: image.ref.namespace, name: disk.volume });
  for (const known of knownDisks(backed, target, claim))
    if (await isThere(store, known)) return { is: 'kept', data: { kept: 'chunks', disk: known } };
  const key = { namespace: image.ref.namespace, name: transferJobName('backup', image.ref) };
  const job = await deps.kube.get(jobs, key);
  return job === undefined ? startJob(advance, disk.volume, claim) : followOwnJob(advance, job, claim);
};

/** Stops a running backup. */
export const stopData = async (deps: BackupDeps, { image }: BackedImage): Promise<void> => {
  const key = { namespace: image.ref.namespace, name: transferJobName('backup', image.ref) };
  const job = await deps.kube.get(jobs, key);
  if (job !== undefined && isOwnedBy(job, image.ref.uid)) await removeJob(deps, job);
};
