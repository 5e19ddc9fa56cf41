// What a backup tells: conditions and status on the image, Events, CloudEvents.
import { isDeepStrictEqual } from 'node:util';
import { type BackupEventType, buildBackupEvent } from '#events/build.ts';
import { type DesiredCondition, findCondition, setConditions } from '#shared/api/conditions.ts';
import type { BackupStatus } from '#shared/api/image-status.ts';
import type { BackupDeps } from '#shared/backup/deps.ts';
import type { BackedImage, BackupImageObject, ImageObjectStatus } from '#shared/backup/image.ts';
import { shortHashOf } from '#shared/backup/metadata.ts';
import { isoTime } from '#shared/populate/state.ts';
import { recordNote } from '#shared/resources/write.ts';
import { isConflict } from '#shared/runtime/errors.ts';

export const dataCondition = 'DataReady';
export const metadataCondition = 'MetadataReady';
/** True on an image that stands where a backup would be restored. */
export const conflictCondition = 'RestoreConflict';

export interface BackupReport {
  readonly conditions: readonly DesiredCondition[];
  /** Left out: as it was. `time` is filled in. */
  readonly backup?: Omit<BackupStatus, 'time'> | undefined;
  /** A Job has just come to that end, though it may have been the same one before. */
  readonly isAnew?: boolean | undefined;
  /** More fields of the kind's own status. */
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

const withoutUndefined = <V>(value: V): V => JSON.parse(JSON.stringify(value)) as V;

const statusOf = (object: BackupImageObject, told: BackupReport, now: string): ImageObjectStatus => {
  const observed = told.conditions.map((condition) => ({
    ...condition,
    observedGeneration: object.metadata.generation ?? 0,
  }));
  const conditions = [...setConditions(object.status?.conditions ?? [], observed, now)];
  return withoutUndefined({ ...object.status, ...told.extra, conditions, backup: withTime(object, told, now) });
};

/** Writes only what differs, and beside others who write status. Gives the object as it was before. */
const writeReported = async (deps: BackupDeps, { type, object }: BackedImage, told: BackupReport): Promise<void> => {
  const now = isoTime(deps.now());
  let current: BackupImageObject | undefined = object;
  for (let round = 1; current !== undefined; round += 1) {
    const status = statusOf(current, told, now);
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

/** Steps on the way, which are no news. */
const quietReasons = new Set([
  'BackingUp',
  'NoBackupTarget',
  'WaitingForLonghorn',
  'ImageNotReady',
  'DataNotReady',
  'Resolved',
]);

/** What changed about a condition, if it is worth a word. */
const newsOf = ({ object }: BackedImage, { conditions }: BackupReport) =>
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
  said: { readonly reason: string; readonly message: string; readonly occurrence: string },
): Promise<void> => {
  if (deps.send === undefined) return;
  const { occurrence, ...words } = said;
  const origin = { source: 'bullion.dev/backup-metadata', now: new Date(deps.now()) };
  const { isDelivered } = await deps.send(buildBackupEvent(type, { image: ref, ...words }, occurrence, origin));
  if (!isDelivered) deps.log.warn('event not sent', { type, image: ref.name });
};

/** Events come first: they can be said twice, and what is written down is not said again. */
export const tell = async (deps: BackupDeps, backed: BackedImage, told: BackupReport): Promise<void> => {
  for (const condition of newsOf(backed, told)) {
    const isGood = condition.status === 'True' && condition.type !== conflictCondition;
    const reason = (isGood ? noteReasons[condition.type] : condition.reason) ?? 'Backup';
    const { message = '' } = condition;
    const occurrence = occurrenceOf(condition);
    await recordNote(deps, backed.image.ref, { type: isGood ? 'Normal' : 'Warning', reason, message, occurrence });
    const type = eventTypeOf(condition);
    if (type !== undefined) await recordBackupEvent(deps, type, backed.image.ref, { reason, message, occurrence });
  }
  await writeReported(deps, backed, told);
};
