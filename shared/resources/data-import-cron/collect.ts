// What may go: versions beyond those to keep, imports that a newer digest made pointless, the form of a version that is not offered. Pure.
import type { VersionEventType } from '#events/build.ts';
import { eventTypes } from '#events/catalogue.ts';
import { cdiLabels } from '#shared/api/cdi/names.ts';
import { persistentVolumeClaims } from '#shared/api/foreign/core.ts';
import { dataVolumes } from '#shared/api/cdi/data-volume.ts';
import { volumeSnapshots } from '#shared/api/foreign/snapshot.ts';
import { type Action, remove, patch } from '#shared/populate/actions.ts';
import { outdatedVersions } from '#shared/golden/version.ts';
import { type SourceFormat, policyNameOf } from '#shared/resources/data-source/point.ts';
import type {
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
import type { Note } from '#shared/resources/transitions.ts';
import { dataSourceKind } from '#shared/api/cdi/data-source.ts';
import type { PlannedStep } from '#shared/resources/reconciler.ts';

/** A volume goes with its import. */
export const removeVolume = ({ dataVolume, volume }: ObservedVersion): readonly Action[] =>
  dataVolume === undefined ? remove(persistentVolumeClaims, volume) : remove(dataVolumes, dataVolume);

export const removeVersion = (version: ObservedVersion): readonly Action[] => [
  ...removeVolume(version),
  ...remove(volumeSnapshots, version.snapshot),
];

export interface Collection {
  readonly actions: readonly Action[];
  readonly notes: readonly Note[];
}

type Gone = Pick<Note, 'reason' | 'message'> & { readonly event: VersionEventType };

/** The same version may come and go more than once. */
const gone = (name: string, { dataVolume, volume, snapshot }: ObservedVersion, { event, ...said }: Gone): Note => ({
  type: 'Normal',
  ...said,
  occurrence: `${said.reason}/${name}/${(dataVolume ?? volume ?? snapshot)?.metadata.uid ?? ''}`,
  version: { of: 'cron', type: event, name },
});

const lastUseOf = (version: ObservedVersion): string => {
  const { volume, snapshot, dataVolume } = version;
  return notedUse(version) ?? (volume ?? snapshot ?? dataVolume)?.metadata.creationTimestamp ?? '';
};

/** Imports of other digests that did not end well, or not yet. The version in use is never one of them. */
export const supersede = (cron: CronResource, observed: ObservedCron, target: string): Collection => {
  const pointless = [...observed.versions].filter(
    ([name, version]) =>
      name !== target &&
      name !== cron.state.offered &&
      version.dataVolume !== undefined &&
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
        message: `the import of ${name} was given up for ${target}`,
      }),
    ),
  };
};

/** Only once the version in use is the newest. */
export const collect = (cron: CronResource, observed: ObservedCron, current: string): Collection => {
  if (!cron.collects) return { actions: [], notes: [] };
  const there = [...observed.versions].filter(([, version]) => !isGoing(version));
  const versions = there.map(([name, version]) => ({ name, lastUse: lastUseOf(version) }));
  const outdated = outdatedVersions(versions, { keep: cron.keep, current, inUse: observed.inUse });
  return {
    actions: outdated.flatMap((name) => removeVersion(observed.versions.get(name) ?? {})),
    notes: outdated.map((name) =>
      gone(name, observed.versions.get(name) ?? {}, {
        event: eventTypes.versionCollected,
        reason: 'VersionCollected',
        message: `${name} was removed: ${cron.keep} are kept`,
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
  return hasVolume(version) ? remove(volumeSnapshots, version.snapshot) : [];
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
): PlannedStep<CronState> & { readonly removed: boolean } => {
  const versions = [...observed.versions].flatMap(([name, version]) =>
    hasArrived(cron, name, version) && observed.policy?.keeps(name) === true ? [] : [version],
  );
  const going = cron.retains
    ? versions.filter((version) => version.dataVolume !== undefined && !isUsable(version))
    : versions;
  const actions = [...(cron.retains ? [] : removeDataSource(cron, observed)), ...going.flatMap(removeVersion)];
  const message = 'removing what goes with this cron';
  return {
    actions,
    state: { ...cron.state, reason: 'Terminating', message },
    removed: going.length === 0 && actions.length === 0,
  };
};
