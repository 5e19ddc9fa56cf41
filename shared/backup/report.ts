// Reports of a backup: conditions and status of the image, Events, CloudEvents.
import { isDeepStrictEqual } from 'node:util';
import { type BackupEventType, buildBackupEvent } from '#events/build.ts';
import { type DesiredCondition, findCondition, setConditions } from '#shared/api/conditions.ts';
import type { BackupStatus } from '#shared/api/image-status.ts';
import type { BackupDeps } from './settings.ts';
import type { BackedImage, BackupImageObject, ImageObjectStatus } from '#shared/backup/image.ts';
import { shortHashOf } from '#shared/backup/metadata.ts';
import { isoTime } from '#shared/populate/state.ts';
import { recordNote } from '#shared/resources/write.ts';
import { isConflict } from '#shared/runtime/errors.ts';
import { withoutUndefined } from '#shared/runtime/json.ts';

export const dataCondition = 'DataReady';
export const metadataCondition = 'MetadataReady';
/** True on an image that prevents the restore of a backup. */
export const conflictCondition = 'RestoreConflict';

export interface BackupReport {
  readonly conditions: readonly DesiredCondition[];
  /** Default: unchanged. `time` is filled in. */
  readonly backup?: Omit<BackupStatus, 'time'> | undefined;
  /** A Job has just ended with this result, which may equal the previous one. */
  readonly isAnew?: boolean | undefined;
  /** Additional fields of the kind's own status. */
  readonly extra?: Readonly<Record<string, unknown>> | undefined;
}

const maxRounds = 5;

const withTime = (
  object: BackupImageObject,
  { backup, isAnew = false }: BackupReport,
  now: string,
): BackupStatus | undefined => {
  const before = object.status?.backup;
  if (backup === undefined) return before;
  const { time, ...known } = before ?? { time: undefined };
  return isDeepStrictEqual(known, backup) && time !== undefined && !isAnew ? before : { ...backup, time: now };
};

const statusOf = (object: BackupImageObject, report: BackupReport, now: string): ImageObjectStatus => {
  const observed = report.conditions.map((condition) => ({
    ...condition,
    observedGeneration: object.metadata.generation ?? 0,
  }));
  const conditions = [...setConditions(object.status?.conditions ?? [], observed, now)];
  return withoutUndefined({ ...object.status, ...report.extra, conditions, backup: withTime(object, report, now) });
};

/** Writes only changed fields, concurrently with other writers of status. Returns the previous object. */
const writeReported = async (deps: BackupDeps, { type, object }: BackedImage, report: BackupReport): Promise<void> => {
  const now = isoTime(deps.now());
  let current: BackupImageObject | undefined = object;
  for (let round = 1; current !== undefined; round += 1) {
    const status = statusOf(current, report, now);
    if (isDeepStrictEqual(status, current.status)) return;
    try {
      await deps.kube.replace(type, { ...current, status }, { subresource: 'status' });
      return;
    } catch (error) {
      if (!isConflict(error) || round === maxRounds) throw error;
      const { namespace, name, uid } = object.metadata;
      const found: BackupImageObject | undefined = await deps.kube.get(type, { namespace, name });
      current = found?.metadata.uid === uid ? found : undefined;
    }
  }
};

/** Reasons of intermediate steps, for which no Event is sent. */
const quietReasons = new Set([
  'BackingUp',
  'NoBackupTarget',
  'WaitingForLonghorn',
  'ImageNotReady',
  'DataNotReady',
  'Resolved',
]);

/** The changed condition, if it is worth an Event. */
const changedConditions = ({ object }: BackedImage, { conditions }: BackupReport) =>
  conditions.filter((condition) => {
    const before = findCondition(object.status?.conditions, condition.type);
    const isNew = before?.status !== condition.status || before.reason !== condition.reason;
    return isNew && (condition.status === 'True' || !quietReasons.has(condition.reason ?? ''));
  });

const eventTypeOf = ({ type, status }: DesiredCondition): BackupEventType | undefined => {
  if (type === conflictCondition) return undefined;
  if (status !== 'True') return 'dev.bullion.backup.failed';
  return type === metadataCondition ? 'dev.bullion.backup.completed' : undefined;
};

const noteReasons: Readonly<Record<string, string>> = {
  [dataCondition]: 'DataBackedUp',
  [metadataCondition]: 'BackedUp',
};

const occurrenceOf = ({ type, reason, message }: DesiredCondition): string =>
  shortHashOf(JSON.stringify([type, reason, message]));

export const recordBackupEvent = async (
  deps: BackupDeps,
  type: BackupEventType,
  ref: BackedImage['image']['ref'],
  reported: { readonly reason: string; readonly message: string; readonly occurrence: string },
): Promise<void> => {
  if (deps.send === undefined) return;
  const { occurrence, ...details } = reported;
  const origin = { source: 'bullion.dev/backup-metadata', now: new Date(deps.now()) };
  const { isDelivered } = await deps.send(buildBackupEvent(type, { image: ref, ...details }, occurrence, origin));
  if (!isDelivered) deps.log.warn('event not sent', { type, image: ref.name });
};

/** Events come first: they may be repeated, while a recorded condition is not reported again. */
export const reportBackup = async (deps: BackupDeps, backed: BackedImage, report: BackupReport): Promise<void> => {
  for (const condition of changedConditions(backed, report)) {
    const isGood = condition.status === 'True' && condition.type !== conflictCondition;
    const reason = (isGood ? noteReasons[condition.type] : condition.reason) ?? 'Backup';
    const { message = '' } = condition;
    const occurrence = occurrenceOf(condition);
    await recordNote(deps, backed.image.ref, { type: isGood ? 'Normal' : 'Warning', reason, message, occurrence });
    const type = eventTypeOf(condition);
    if (type !== undefined) await recordBackupEvent(deps, type, backed.image.ref, { reason, message, occurrence });
  }
  await writeReported(deps, backed, report);
};
