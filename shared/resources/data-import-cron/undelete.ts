// Versions that somebody deleted: their storage stays as long as the policy wants (`spec.retention.undeleteFor`), they are brought back from it, and then
// it goes. Nothing is held by a finalizer, so that a namespace can always end. Pure; called by plan.ts and collect.ts.
import { type DataImportCronStatus, dataImportCronKind } from '#shared/api/cdi/data-import-cron.ts';
import { persistentVolumes } from '#shared/api/foreign/core.ts';
import { type VolumeSnapshotContent, volumeSnapshotContents } from '#shared/api/foreign/snapshot.ts';
import { annotations } from '#shared/api/names.ts';
import { parseQuantity } from '#shared/api/quantity.ts';
import { type Action, patch, remove } from '#shared/populate/actions.ts';
import { isoTime } from '#shared/populate/state.ts';
import type { CronResource, ObservedCron, ObservedVersion } from '#shared/resources/data-import-cron/cron.ts';
import { handleOf, keep, rewrite, unkeep } from '#shared/resources/data-import-cron/kept.ts';
import type { KeptRecord, KeptStorage } from '#shared/resources/data-import-cron/storage.ts';
import { isUsable } from '#shared/resources/data-import-cron/version.ts';
import { isBroughtBack, isShared, restore } from '#shared/resources/data-import-cron/restoring.ts';
import type { Note } from '#shared/resources/transitions.ts';

type Deleted = NonNullable<DataImportCronStatus['deleted']>[number];

/** Names that are asked for, and whose storage is there without claim or snapshot. */
export const wantedBackIn = (
  cron: CronResource,
  { storage, versions }: Pick<ObservedCron, 'storage' | 'versions'>,
): ReadonlySet<string> => {
  const lost = new Set(storage.kept.flatMap(({ record, isLive }) => (isLive ? [] : [record.version])));
  const isOpen = (name: string): boolean =>
    !storage.taken.has(name) && !isUsable(versions.get(name) ?? {}) && (lost.has(name) || isComing(versions.get(name)));
  return new Set(cron.wantedBack.filter(isOpen));
};

/** Made anew, and not bound or ready yet. */
const isComing = (version: ObservedVersion = {}): boolean =>
  isBroughtBack(version) || (version.kept ?? []).some(({ isLive }) => isLive);

interface Moment {
  /** Milliseconds that deleted versions can be brought back; `undefined`: not at all. */
  readonly grace: number | undefined;
  /** Milliseconds since the epoch. */
  readonly now: number;
}

const isOver = ({ deleted }: KeptRecord, { grace, now }: Moment): boolean =>
  grace === undefined || (deleted !== undefined && Date.parse(deleted) <= now && now - Date.parse(deleted) >= grace);

/** Of one that was deleted and comes back, or of one that is there. */
const follow = (storage: KeptStorage, { versions }: ObservedCron, { grace, now }: Moment): readonly Action[] => {
  const { record, isLive } = storage;
  if (isLive) {
    if (grace === undefined) return [unkeep(storage)];
    const { deleted, ...rest } = record;
    return deleted === undefined ? bindContent(storage, versions.get(record.version)) : [rewrite(storage, rest)];
  }
  // A clock that was ahead is not waited for.
  const isNoted = record.deleted !== undefined && Date.parse(record.deleted) <= now;
  return isNoted || grace === undefined ? [] : [rewrite(storage, { ...record, deleted: isoTime(now) })];
};

/** A content that was made by hand goes with its snapshot only once it names that one. */
const bindContent = ({ form, object }: KeptStorage, version: ObservedVersion = {}): readonly Action[] => {
  const uid = version.snapshot?.metadata.uid;
  if (form !== 'snapshot' || uid === undefined || object.spec.volumeSnapshotRef?.uid !== undefined) return [];
  return [patch(volumeSnapshotContents, object, { spec: { volumeSnapshotRef: { uid } } })];
};

/** Somebody may have taken a volume that is promised to a claim of its name. */
const deadUid = '00000000-0000-0000-0000-000000000000';

/** Its bytes go, where that is what would have happened without us. A snapshot that another content stands for goes with that one. */
const release = (storage: KeptStorage, isShared: boolean): readonly Action[] => {
  if (storage.form === 'snapshot') {
    if (isShared) return remove(volumeSnapshotContents, storage.object);
    const isRetained = storage.record.policy === 'Retain';
    return [unkeep(storage), ...(isRetained ? [] : remove(volumeSnapshotContents, storage.object))];
  }
  const { claimRef } = storage.object.spec;
  const isPromised = claimRef !== undefined && claimRef.uid === undefined;
  // It is reclaimed once the claim that it is promised to has been there.
  return isPromised
    ? [patch(persistentVolumes, storage.object, { spec: { claimRef: { uid: deadUid } } })]
    : [unkeep(storage)];
};

/** The snapshot was made anew, and nothing needs the first content any more. */
const hasHeir = (storage: KeptStorage, { storage: { kept }, versions }: ObservedCron): boolean =>
  kept.some(
    (other) =>
      other !== storage &&
      other.isLive &&
      handleOf(other) !== undefined &&
      handleOf(other) === handleOf(storage) &&
      versions.get(other.record.version)?.snapshot?.status?.readyToUse === true,
  );

const bytesOf = ({ form, object }: KeptStorage): number | undefined =>
  form === 'volume' ? parseQuantity(object.spec.capacity['storage']) : object.status?.restoreSize;

const deletedOf = (storage: readonly KeptStorage[], grace: number, now: number): readonly Deleted[] => {
  const names = [...new Set(storage.map(({ record }) => record.version))].toSorted();
  return names.map((name) => {
    const forms = storage.filter(({ record }) => record.version === name);
    const times = forms.map(({ record }) => Date.parse(record.deleted ?? '')).filter((time) => time <= now);
    const time = Math.min(now, ...times);
    const bytes = forms.reduce((sum, form) => sum + (bytesOf(form) ?? 0), 0);
    return { name, time: isoTime(time), until: isoTime(time + grace), bytes };
  });
};

export interface StoragePlan {
  readonly actions: readonly Action[];
  readonly notes: readonly Note[];
  /** What can be brought back. */
  readonly deleted: readonly Deleted[];
}

/** What came of what was asked for; `undefined`: it is on its way. */
const answerOf = (name: string, observed: ObservedCron, isThere: boolean): Omit<Note, 'occurrence'> | undefined => {
  const version = observed.versions.get(name) ?? {};
  if (isUsable(version))
    return { type: 'Normal', reason: 'VersionUndeleted', message: `${name} is there, with its bytes` };
  const failed = (why: string) =>
    ({ type: 'Warning', reason: 'UndeleteFailed', message: `${name} cannot be brought back: ${why}` }) as const;
  if (observed.storage.taken.has(name))
    return failed('a claim or a snapshot of somebody else has its name: remove that first');
  if (!isThere) return failed('its bytes are gone; bullion undelete lists what can be');
  return undefined;
};

const answer = (cron: CronResource, observed: ObservedCron): Pick<StoragePlan, 'actions' | 'notes'> => {
  const there = wantedBackIn(cron, observed);
  const answers = cron.wantedBack.map((name) => ({ name, note: answerOf(name, observed, there.has(name)) }));
  const open = answers.flatMap(({ name, note }) => (note === undefined ? [name] : []));
  if (open.length === answers.length) return { actions: [], notes: [] };
  const change = { metadata: { annotations: { [annotations.undelete]: open.length === 0 ? null : open.join(',') } } };
  const at = cron.object.metadata.resourceVersion ?? '';
  return {
    actions: [patch(dataImportCronKind.type, cron.object, change)],
    notes: answers.flatMap(({ name, note }) =>
      note === undefined ? [] : [{ ...note, occurrence: `${note.reason}/${name}/${at}` }],
    ),
  };
};

/** The storage of all versions: kept, noted as deleted, brought back, given up. Of a cron that goes, all of it is as it was without us. */
export const planStorage = (cron: CronResource, observed: ObservedCron, now: number): StoragePlan => {
  const { storage, versions, policy } = observed;
  const grace = cron.deleting ? undefined : policy?.retention?.undeleteFor;
  const moment = { grace, now };
  const wanted = wantedBackIn(cron, observed);
  // Marked only once the status records it, so that a later pass knows that there are marks to remove.
  const isNoted = cron.state.retention?.keeps === true;
  const lost = storage.kept.filter(({ isLive }) => !isLive);
  const fate = (one: KeptStorage): readonly Action[] => {
    if (one.isLive) return follow(one, observed, moment);
    if (hasHeir(one, observed)) return remove(volumeSnapshotContents, one.object as VolumeSnapshotContent);
    if (wanted.has(one.record.version) && grace !== undefined) return restore(cron, observed, one, now);
    return isOver(one.record, moment) ? release(one, isShared(one, observed)) : follow(one, observed, moment);
  };
  const answered = answer(cron, observed);
  return {
    actions: [
      ...storage.kept.flatMap(fate),
      ...(isNoted ? storage.unkept.flatMap((one) => keep(cron, one, versions.get(one.name) ?? {})) : []),
      ...answered.actions,
    ],
    notes: answered.notes,
    deleted:
      grace === undefined
        ? []
        : deletedOf(
            lost.filter(({ record }) => !isOver(record, moment)),
            grace,
            now,
          ),
  };
};
