// What may go: versions beyond those to keep, imports that a newer digest made pointless, the form of a version that is not offered. Pure.
import type { VersionEventType } from '#events/build.ts';
import { eventTypes } from '#events/catalogue.ts';
import { cdiLabels } from '#shared/api/cdi/names.ts';
import { persistentVolumeClaims } from '#shared/api/foreign/core.ts';
import { dataVolumes } from '#shared/api/cdi/data-volume.ts';
import { volumeSnapshots } from '#shared/api/foreign/snapshot.ts';
import { annotations } from '#shared/api/names.ts';
import type { ResourceType } from '#shared/api/object.ts';
import { type Action, type PlanContext, amend, remove, patch } from '#shared/populate/actions.ts';
import { isoTime } from '#shared/populate/state.ts';
import { type RetainedVersion, judgeRetention } from '#shared/golden/version.ts';
import { type SourceFormat, policyNameOf } from '#shared/resources/data-source/point.ts';
import type {
  CronPolicy,
  CronState,
  CronResource,
  ObservedCron,
  ObservedVersion,
} from '#shared/resources/data-import-cron/cron.ts';
import {
  hasArrived,
  hasSnapshot,
  hasVolume,
  isGoing,
  isUsable,
  notedUse,
} from '#shared/resources/data-import-cron/version.ts';
import { unkeep } from '#shared/resources/data-import-cron/kept.ts';
import type { KeptStorage } from '#shared/resources/data-import-cron/storage.ts';
import { isBroughtBack } from '#shared/resources/data-import-cron/restoring.ts';
import { planStorage } from '#shared/resources/data-import-cron/undelete.ts';
import type { Note } from '#shared/resources/transitions.ts';
import { dataSourceKind } from '#shared/api/cdi/data-source.ts';
import type { PlannedStep } from '#shared/resources/reconciler.ts';

/** What we remove is gone: its storage goes with it. */
const unkeepAll = ({ kept = [] }: ObservedVersion, form: KeptStorage['form']): readonly Action[] =>
  kept.filter((one) => one.form === form).map(unkeep);

/** A volume goes with its import. */
export const removeVolume = (version: ObservedVersion): readonly Action[] => {
  const { dataVolume, volume } = version;
  const actions = dataVolume === undefined ? remove(persistentVolumeClaims, volume) : remove(dataVolumes, dataVolume);
  return actions.length === 0 ? [] : [...unkeepAll(version, 'volume'), ...actions];
};

const removeSnapshot = (version: ObservedVersion): readonly Action[] => {
  const actions = remove(volumeSnapshots, version.snapshot);
  return actions.length === 0 ? [] : [...unkeepAll(version, 'snapshot'), ...actions];
};

export const removeVersion = (version: ObservedVersion): readonly Action[] => [
  ...removeVolume(version),
  ...removeSnapshot(version),
];

export interface Collection {
  readonly actions: readonly Action[];
  readonly notes: readonly Note[];
  /** Milliseconds since the epoch: when another version may go. */
  readonly next?: number | undefined;
}

type Gone = Pick<Note, 'reason' | 'message'> & { readonly event: VersionEventType };

/** The same version may come and go more than once. */
const gone = (name: string, { dataVolume, volume, snapshot }: ObservedVersion, { event, ...note }: Gone): Note => ({
  type: 'Normal',
  ...note,
  occurrence: `${note.reason}/${name}/${(dataVolume ?? volume ?? snapshot)?.metadata.uid ?? ''}`,
  version: { of: 'cron', type: event, name },
});

const createdOf = ({ volume, snapshot, dataVolume }: ObservedVersion): string =>
  (volume ?? snapshot ?? dataVolume)?.metadata.creationTimestamp ?? '';

/** A disk that was made from it, or that it was what the cron offered. RFC 3339; empty when unknown. */
export const lastUseOf = (name: string, version: ObservedVersion, lastDisks: ObservedCron['lastDisks']): string => {
  const [one, other] = [notedUse(version) ?? createdOf(version), lastDisks.get(name)];
  return other !== undefined && !(Date.parse(one) >= Date.parse(other)) ? other : one;
};

/** Imports of other digests that did not end well, or not yet. The version in use is never one of them. */
export const supersede = (cron: CronResource, observed: ObservedCron, target: string): Collection => {
  const pointless = [...observed.versions].filter(
    ([name, version]) =>
      name !== target &&
      name !== cron.state.offered &&
      version.dataVolume !== undefined &&
      !isBroughtBack(version) &&
      version.dataVolume.metadata.deletionTimestamp === undefined &&
      !isUsable(version) &&
      version.dataVolume.status?.phase !== 'Succeeded',
  );
  return {
    actions: pointless.flatMap(([, version]) => removeVersion(version)),
    notes: pointless.map(([name, version]) =>
      gone(name, version, {
        event: eventTypes.versionSuperseded,
        reason: 'ImportSuperseded',
        message: `the import of ${name} was superseded by ${target}`,
      }),
    ),
  };
};

export type KeptVersions = Pick<ObservedCron, 'versions' | 'inUse' | 'lastDisks'> & {
  readonly policy: Pick<CronPolicy, 'retention'> | undefined;
};

/** Each version of a cron, and what keeps it. `now`: milliseconds since the epoch. */
const retainedVersions = (
  cron: CronResource,
  { versions, inUse, lastDisks, policy }: KeptVersions,
  current: string,
  now: number,
): readonly RetainedVersion[] => {
  const there = [...versions].filter(([, version]) => !isGoing(version));
  const found = there.map(([name, version]) => ({
    name,
    lastUse: lastUseOf(name, version, lastDisks),
    created: createdOf(version),
  }));
  const { keep = cron.keep, maxAge, unusedFor } = policy?.retention ?? {};
  return judgeRetention(found, { keep, current, inUse, maxAge, unusedFor, now });
};

/** Since when nothing keeps it; `undefined`: something does, or nobody noted it yet. */
export const deletedAt = ({ volume, snapshot }: ObservedVersion): string | undefined =>
  [volume, snapshot]
    .map((form) => form?.metadata.annotations?.[annotations.deleted])
    .find((time) => time !== undefined);

/** A clock that was ahead is not waited for. */
const isDeletedBy = (version: ObservedVersion, now: number): boolean => Date.parse(deletedAt(version) ?? '') <= now;

/** Without a grace it goes at once. */
const isOver = (version: ObservedVersion, grace: number | undefined, now: number): boolean =>
  grace === undefined || (isDeletedBy(version, now) && now - Date.parse(deletedAt(version) ?? '') >= grace);

/** Whatever else is written on them in this step; `null`: kept after all. */
const noteDeleted = ({ volume, snapshot }: ObservedVersion, time: string | null): readonly Action[] => {
  const change = { metadata: { annotations: { [annotations.deleted]: time } } };
  return [
    ...(volume === undefined ? [] : [amend(persistentVolumeClaims as ResourceType, volume.metadata, change)]),
    ...(snapshot === undefined ? [] : [amend(volumeSnapshots as ResourceType, snapshot.metadata, change)]),
  ];
};

/** What a person may remove at this moment: nothing that is on its way. */
export const prunableVersions = (cron: CronResource, found: KeptVersions, now: number): readonly RetainedVersion[] => {
  const { offered } = cron.state;
  return retainedVersions(cron, found, offered ?? '', now).map(({ name, keptBy }) => {
    const version = found.versions.get(name) ?? {};
    const more = [
      [offered === undefined, `DataImportCron ${cron.ref.name} offers no version yet`],
      [!cron.collects, `DataImportCron ${cron.ref.name} is to keep all: spec.garbageCollect`],
      [!hasArrived(cron, name, version), 'it is being imported'],
    ] as const;
    return { name, keptBy: keptBy ?? more.find(([applies]) => applies)?.[1] };
  });
};

/** Who reads from versions, and locks, come to their end without an event that leads here. */
const recheckMs = 10 * 60_000;

/** When what is kept now may not be kept any more, by times alone; `undefined`: not before something else happens. */
const nextTime = (
  retained: readonly RetainedVersion[],
  { versions, inUse, lastDisks, policy }: ObservedCron,
  now: number,
): number | undefined => {
  if (policy?.retention === undefined) return undefined;
  const { maxAge, unusedFor, undeleteFor = 0 } = policy.retention;
  const times = retained.flatMap(({ name, keptBy }) => {
    const version = versions.get(name) ?? {};
    if (keptBy === undefined) return [Date.parse(deletedAt(version) ?? isoTime(now)) + undeleteFor];
    if (inUse.get(name) === keptBy) return policy.keeperOf(name) === undefined ? [now + recheckMs] : [];
    return [
      Date.parse(createdOf(version)) + (maxAge ?? Number.NaN),
      Date.parse(lastUseOf(name, version, lastDisks)) + (unusedFor ?? Number.NaN),
    ];
  });
  const later = times.filter((time) => time > now);
  return later.length === 0 ? undefined : Math.min(...later);
};

/** Only once the version in use is the newest. */
export const collect = (cron: CronResource, observed: ObservedCron, current: string, now: number): Collection => {
  if (!cron.collects) return { actions: [], notes: [] };
  const retained = retainedVersions(cron, observed, current, now);
  const grace = observed.policy?.retention?.undeleteFor;
  const formsOf = (name: string): ObservedVersion => observed.versions.get(name) ?? {};
  const going = retained.flatMap(({ name, keptBy }) => (keptBy === undefined ? [name] : [])).reverse();
  const outdated = going.filter((name) => isOver(formsOf(name), grace, now));
  const fresh = going.filter((name) => !outdated.includes(name) && !isDeletedBy(formsOf(name), now));
  const back = retained.flatMap(({ name, keptBy }) =>
    keptBy !== undefined && deletedAt(formsOf(name)) !== undefined ? [name] : [],
  );
  return {
    next: nextTime(retained, observed, now),
    actions: [
      ...fresh.flatMap((name) => noteDeleted(formsOf(name), isoTime(now))),
      ...back.flatMap((name) => noteDeleted(formsOf(name), null)),
      ...outdated.flatMap((name) => removeVersion(formsOf(name))),
    ],
    notes: outdated.map((name) =>
      gone(name, observed.versions.get(name) ?? {}, {
        event: eventTypes.versionCollected,
        reason: 'VersionCollected',
        message: `${name} was removed: ${observed.policy?.retention?.keep ?? cron.keep} are kept`,
      }),
    ),
  };
};

/** Whether a channel still points to the form that is not offered any more: its policy repoints it first. */
export const isOtherFormUsed = ({ policy }: ObservedCron, name: string, format: SourceFormat): boolean =>
  policy?.offers(name, format === 'snapshot' ? 'pvc' : 'snapshot') === true;

/** What was imported on the way to the form that is offered now. */
export const dropOtherForm = (version: ObservedVersion, format: SourceFormat): readonly Action[] => {
  if (format === 'snapshot') return hasSnapshot(version) ? removeVolume(version) : [];
  return hasVolume(version) ? removeSnapshot(version) : [];
};

// What goes with a cron: everything it manages where its retention policy says so, but what channels need; else imports that did not end. Pure.

/** Others who own it decide when it goes. */
const removeDataSource = (cron: CronResource, { dataSource }: ObservedCron): readonly Action[] => {
  if (dataSource === undefined || dataSource.metadata.labels?.[cdiLabels.cron] !== cron.ref.name) return [];
  if (policyNameOf(dataSource) !== undefined) return [];
  const owners = dataSource.metadata.ownerReferences ?? [];
  const others = owners.filter(({ uid }) => uid !== cron.ref.uid);
  if (others.length === 0) return remove(dataSourceKind.type, dataSource);
  return others.length === owners.length
    ? []
    : [patch(dataSourceKind.type, dataSource, { metadata: { ownerReferences: others } })];
};

export const planRemoval = (
  cron: CronResource,
  observed: ObservedCron,
  { now }: Pick<PlanContext, 'now'>,
): PlannedStep<CronState> & { readonly removed: boolean } => {
  const versions = [...observed.versions].flatMap(([name, version]) =>
    hasArrived(cron, name, version) && observed.policy?.keeperOf(name) !== undefined ? [] : [version],
  );
  const going = cron.retains
    ? versions.filter((version) => version.dataVolume !== undefined && !isUsable(version))
    : versions;
  const actions = [
    ...planStorage(cron, observed, now).actions,
    ...(cron.retains ? [] : removeDataSource(cron, observed)),
    ...going.flatMap((version) => removeVersion({ ...version, kept: undefined })),
  ];
  const message = 'removing what belongs to this cron';
  return {
    actions,
    state: { ...cron.state, reason: 'Terminating', message },
    removed: going.length === 0 && actions.length === 0,
  };
};
