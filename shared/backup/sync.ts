// Reconciles one image with the target: adds the finalizer, copies its data, then its metadata, and reports the state. Safe to repeat at any
// time.
import { finalizers } from '#shared/api/names.ts';
import { clusterOf } from '#shared/backup/clusters.ts';
import { type DataStep, advanceData } from '#shared/backup/data.ts';
import type { BackupDeps } from './settings.ts';
import { buildMetadata } from '#shared/backup/document.ts';
import { type BackedImage, type BackupImageObject, imageTypeOf, readImage } from '#shared/backup/image.ts';
import { type BackupData, type ImageMetadata, serializeMetadata, shortHashOf } from '#shared/backup/metadata.ts';
import { findTarget } from '#shared/backup/open.ts';
import { removeBackup } from '#shared/backup/removal.ts';
import { type BackupReport, dataCondition, metadataCondition, reportBackup } from '#shared/backup/report.ts';
import { outsideSweeps } from '#shared/backup/sweep/plan.ts';
import type { ReadTarget, BackupTarget } from '#shared/backup/target.ts';
import type { BackupStatus } from '#shared/api/image-status.ts';
import { findCondition } from '#shared/api/conditions.ts';
import type { Store } from '#shared/clients/store/store.ts';
import { AppError, isConflict } from '#shared/runtime/errors.ts';
import { type Outcome, done, failed, retry, waiting } from '#shared/runtime/outcome.ts';
import { writeMetadata } from './remote.ts';

interface Ref {
  readonly apiVersion: string;
  readonly kind: string;
  readonly namespace?: string | undefined;
  readonly name: string;
}

/** `done` for objects that are not images, or are gone. `found`: the target, if it was already read. */
export const syncImage = async (deps: BackupDeps, ref: Ref, found?: ReadTarget): Promise<Outcome> => {
  const type = imageTypeOf(ref);
  const object = type && (await deps.kube.get(type, { namespace: ref.namespace, name: ref.name }));
  const backed = type && object && readImage(type, object);
  if (backed === undefined) return done;
  try {
    if (backed.image.deleting) return await removeBackup(deps, backed, found ?? (await findTarget(deps.kube)));
    return backed.isWanted ? await advance(deps, backed, found ?? (await findTarget(deps.kube))) : done;
  } catch (error) {
    // The image was changed concurrently: the event of that change, or the tick, reconciles again.
    if (isConflict(error)) return retry(2, `image ${ref.name} keeps being changed by other clients`);
    throw error;
  }
};

const both = (status: 'True' | 'False', reason: string, message: string): BackupReport => ({
  conditions: [dataCondition, metadataCondition].map((type) => ({ type, status, reason, message })),
});

const advance = async (deps: BackupDeps, backed: BackedImage, read: ReadTarget): Promise<Outcome> => {
  if (read.is === 'none') return rest(deps, backed, 'NoBackupTarget', noTarget);
  if (read.is === 'faulty') return rest(deps, backed, 'BackupTargetInvalid', read.message);
  // An existing backup stays valid while the image is checked again.
  if (backed.image.state.phase !== 'Available')
    return backed.object.status?.backup === undefined
      ? rest(deps, backed, 'ImageNotReady', 'the image is backed up once it is ready to use')
      : done;
  const held = await hold(deps, backed);
  const opened = openOrReport(deps, read.target);
  if (typeof opened === 'string') return rest(deps, held, 'BackupTargetInvalid', opened);
  try {
    return await backUp({ deps, backed: held, target: read.target, store: opened.store });
  } catch (error) {
    if (!(error instanceof AppError) || isConflict(error)) throw error;
    return await unavailable(deps, held, read.target, error);
  } finally {
    await opened.close();
  }
};

const noTarget =
  'this cluster has no backup target: an operator sets one in Harvester\'s setting "backup-target", or in the ConfigMap ' +
  'and Secret backup-target of namespace bullion-system';

/** Waits for an action of a user. */
const rest = async (deps: BackupDeps, backed: BackedImage, reason: string, message: string): Promise<Outcome> => {
  await reportBackup(deps, backed, both('False', reason, message));
  return waiting(message);
};

const openOrReport = (deps: BackupDeps, target: BackupTarget) => {
  try {
    return deps.open(target);
  } catch (error) {
    if (!(error instanceof AppError)) throw error;
    return error.message;
  }
};

/** The backup may still exist: it is only not confirmed. The tick retries. */
const unavailable = async (
  deps: BackupDeps,
  backed: BackedImage,
  target: BackupTarget,
  error: AppError,
): Promise<Outcome> => {
  const message = `${target.name} cannot be used: ${error.message}; retrying every minute`;
  const wasKept = findCondition(backed.object.status?.conditions, dataCondition)?.status === 'True';
  const isSamePlace = backed.object.status?.backup?.target === target.name;
  const types = wasKept && isSamePlace ? [metadataCondition] : [dataCondition, metadataCondition];
  const conditions = types.map((type) => ({
    type,
    status: 'False' as const,
    reason: 'BackupTargetUnavailable',
    message,
  }));
  await reportBackup(deps, backed, { conditions });
  return waiting(message);
};

/** Set before anything is written, so that a deletion is not missed. */
const hold = async (deps: BackupDeps, backed: BackedImage): Promise<BackedImage> => {
  if (backed.isHeld) return backed;
  const { metadata } = backed.object;
  const held: BackupImageObject = await deps.kube.mergePatch(
    backed.type,
    { namespace: metadata.namespace, name: metadata.name },
    {
      metadata: {
        resourceVersion: metadata.resourceVersion,
        finalizers: [...(metadata.finalizers ?? []), finalizers.backup],
      },
    },
  );
  return readImage(backed.type, held) ?? backed;
};

interface Keeping {
  readonly deps: BackupDeps;
  readonly backed: BackedImage;
  readonly target: BackupTarget;
  readonly store: Store;
}

type Kept = Extract<DataStep, { is: 'kept' }> & {
  readonly metadata: ImageMetadata;
  readonly key: string;
  readonly revision: string;
};

const upload = async (keeping: Keeping): Promise<Kept | Exclude<DataStep, { is: 'kept' }>> => {
  const step = await advanceData(keeping);
  if (step.is !== 'kept') return step;
  const metadata = buildMetadata(keeping.backed, await clusterOf(keeping.deps.kube), step.data);
  return { ...step, metadata, ...(await writeMetadata(keeping, metadata)) };
};

const backUp = async (keeping: Keeping): Promise<Outcome> => {
  const { deps, backed, target, store } = keeping;
  const guarded = await outsideSweeps(store, deps.now(), () => upload(keeping));
  if (guarded.is === 'swept') return beingSwept(keeping, guarded.message);
  const step = guarded.value;
  if (step.is !== 'kept') return missingData(deps, backed, step);
  const { metadata, key, revision } = step;
  await reportBackup(deps, backed, {
    conditions: [
      { type: dataCondition, status: 'True', reason: 'Kept', message: keptWords(step.data, target) },
      { type: metadataCondition, status: 'True', reason: 'Written', message: `${key} is in ${target.name}` },
    ],
    backup: {
      target: target.name,
      object: key,
      revision,
      digest: digestOf(metadata),
      ...dataStatus(step.data),
      bytes: step.bytes ?? backed.object.status?.backup?.bytes ?? 0,
    },
    isAnew: step.bytes !== undefined,
    extra: releasedStatus(backed, target),
  });
  return done;
};

/** A confirmed backup stays valid: a sweep removes nothing that metadata refers to. */
const beingSwept = async ({ deps, backed }: Keeping, message: string): Promise<Outcome> => {
  const { conditions } = backed.object.status ?? {};
  if (findCondition(conditions, metadataCondition)?.status === 'True') return waiting(message);
  return rest(deps, backed, 'TargetBeingSwept', message);
};

const dataStatus = (data: BackupData) => {
  if (data.kept === 'chunks') return { disk: data.disk };
  const { kept: _, ...storage } = data;
  return { storage };
};

const keptWords = (data: BackupData, target: BackupTarget): string =>
  data.kept === 'chunks' ? `disk ${data.disk.slice(0, 12)} is in ${target.name}` : 'stored by Longhorn';

/** Fields that clients of Harvester read. HyperCloud's kind does not have them. */
const releasedStatus = ({ type }: BackedImage, target: BackupTarget): Readonly<Record<string, unknown>> => {
  if (type.group !== 'harvesterhci.io') return {};
  const backupTarget =
    target.type === 's3'
      ? { endpoint: target.endpoint, bucketName: target.bucket, bucketRegion: target.region }
      : { endpoint: target.name };
  return { backupTarget };
};

const missingData = async (
  deps: BackupDeps,
  backed: BackedImage,
  { is, reason, message }: Exclude<DataStep, { is: 'kept' }>,
): Promise<Outcome> => {
  const waits = `written once the disk is in the target: ${message}`;
  await reportBackup(deps, backed, {
    conditions: [
      { type: dataCondition, status: 'False', reason, message },
      { type: metadataCondition, status: 'False', reason: 'DataNotReady', message: waits },
    ],
  });
  return is === 'failed' ? failed(reason, message) : waiting(message);
};

export const digestOf = (metadata: ImageMetadata): string => shortHashOf(serializeMetadata(metadata).toString());

const dataOf = ({ disk, storage }: BackupStatus): BackupData | undefined => {
  if (disk !== undefined) return { kept: 'chunks', disk };
  return storage === undefined ? undefined : { kept: 'by-storage', ...storage };
};

/** Whether an image that looks settled has changed since its metadata was written. Pure. */
export const hasNews = (backed: BackedImage, cluster: string, targetName: string): boolean => {
  const { object, image } = backed;
  const { backup, conditions } = object.status ?? {};
  const isGood = [dataCondition, metadataCondition].every((type) => findCondition(conditions, type)?.status === 'True');
  if (!isGood || backup === undefined || backup.target !== targetName) return true;
  if (image.state.phase !== 'Available') return false;
  const data = dataOf(backup);
  return data !== undefined && digestOf(buildMetadata(backed, cluster, data)) !== backup.digest;
};
