// How DataImportCrons are reconciled. One line in registry.ts.
import { setCdiConditions } from '#shared/api/conditions.ts';
import {
  type DataImportCron,
  type DataImportCronStatus,
  dataImportCronKind,
} from '#shared/api/cdi/data-import-cron.ts';
import { dataSourceKind } from '#shared/api/cdi/data-source.ts';
import { storageProfiles } from '#shared/api/cdi/storage-profile.ts';
import {
  type PersistentVolume,
  persistentVolumeClaims,
  persistentVolumes,
  storageClasses,
} from '#shared/api/foreign/core.ts';
import { dataVolumes } from '#shared/api/cdi/data-volume.ts';
import { volumeSnapshotClasses, volumeSnapshotContents, volumeSnapshots } from '#shared/api/foreign/snapshot.ts';
import { servedKinds } from '#shared/api/kinds.ts';
import { finalizers } from '#shared/api/names.ts';
import { type KubeObject, ownerOf, type ResourceType } from '#shared/api/object.ts';
import { buildEnding, endNameOf } from '#shared/resources/data-import-cron/verdict.ts';
import { plan } from '#shared/resources/data-import-cron/plan.ts';
import { planRemoval } from '#shared/resources/data-import-cron/collect.ts';
import { check } from '#shared/resources/data-import-cron/observed.ts';
import {
  type CronState,
  type CronResource,
  askedOf,
  isRetryWanted,
  readCron,
  type ObservedCron,
} from '#shared/resources/data-import-cron/cron.ts';
import { conclude, progressing, upToDate } from '#shared/resources/data-import-cron/verdict.ts';
import type { Reconciler, Planner, Refusal } from '#shared/resources/reconciler.ts';
import { type Outcome, done, failed, waiting } from '#shared/runtime/outcome.ts';
import type { WatchedChild } from '#shared/populate/watched-child.ts';
import { plainReconciler, refusalOfFaults } from '#shared/resources/reconciler.ts';
import { withoutUndefined } from '#shared/runtime/json.ts';

const planner: Planner<CronResource, ObservedCron> = { check, plan, remove: planRemoval };

/** Every change may be what the cron waits for; most of them are few. */
const follow = <T extends KubeObject>(type: ResourceType<T>, verbs: WatchedChild['verbs']): WatchedChild => ({
  type: type,
  verbs,
  ownerOf,
  matters: () => true,
});

/** Its claim is gone. */
const isReleased = ({ status }: PersistentVolume): boolean => status?.phase === 'Released';

const isServed = ({ group, plural }: Pick<ResourceType, 'group' | 'plural'>): boolean =>
  servedKinds.some(({ type }) => type.group === group && type.plural === plural);

const toStatus = (object: DataImportCron, cron: CronResource, state: CronState, now: string): DataImportCronStatus => {
  const { status = {} } = object;
  const { current, offered, lastPoll } = state;
  return withoutUndefined({
    ...status,
    observedGeneration: cron.generation,
    currentImports:
      current === undefined
        ? undefined
        : [{ DataVolumeName: current.name, Digest: current.digest, Validator: current.validator }],
    lastImportedPVC: offered === undefined ? undefined : { namespace: cron.namespace, name: offered },
    lastImportTimestamp: state.importedAt,
    lastExecutionTimestamp: lastPoll?.time,
    nextExecutionTimestamp: state.nextPoll,
    sourceFormat: state.format,
    snapshotClass: state.snapshotClass,
    importsToKeep: cron.keep,
    lastPoll,
    waiting: state.waiting,
    counts: state.counts,
    retention: state.retention,
    deleted: state.deleted,
    retryHandled: state.handledRetryToken,
    announced: state.announced,
    conditions: setCdiConditions(status.conditions ?? [], state.conditions, now),
  });
};

const inTrouble = (cron: CronResource, { reason, message }: Refusal): CronState =>
  conclude(cron, cron.state, {
    phase: 'Waiting',
    progressing: progressing.none,
    upToDate: cron.digest === '' ? upToDate.noDigest : upToDate.outdated,
    trouble: { reason, message },
  });

/** Somebody wrote a digest or a time of their own, or wants a failed import tried again, or a version back. */
const isAskedFor = (cron: CronResource): boolean =>
  isRetryWanted(cron) ||
  cron.wantedBack.length > 0 ||
  (cron.state.retention?.pending ?? 0) > 0 ||
  cron.digest !== (cron.state.current === undefined ? '' : askedOf(cron.state.current)) ||
  cron.object.metadata.annotations?.['cdi.kubevirt.io/storage.import.nextCronTime'] !== cron.state.nextPoll;

const outcomeOf = ({ phase, reason, message }: CronState): Outcome => {
  if (phase === 'Ready') return done;
  return phase === 'Failed' ? failed(reason, message) : waiting(message);
};

export const dataImportCronReconciler: Reconciler<DataImportCron, CronResource> = {
  ...plainReconciler('Ready', inTrouble),
  kind: dataImportCronKind,
  watchedChildren: () => [
    // A source that watches a kind the cluster does not have never becomes ready, and holds up the others.
    ...(isServed(dataVolumes) ? [follow(dataVolumes, ['create', 'delete'])] : []),
    follow(dataSourceKind.type, ['create', 'patch', 'delete']),
    follow(persistentVolumeClaims, ['create', 'patch', 'delete']),
    follow(volumeSnapshots, ['create', 'patch', 'delete']),
    { ...follow(persistentVolumes, ['patch']), matters: (volume) => isReleased(volume as PersistentVolume) },
  ],
  // What versions that can be brought back are made of. A source for contents would be one more watch in every cluster.
  makes: [{ type: volumeSnapshotContents, verbs: ['create', 'patch', 'delete'] }],
  reads: () => [
    dataVolumes,
    persistentVolumeClaims,
    volumeSnapshots,
    storageClasses,
    volumeSnapshotClasses,
    storageProfiles,
    persistentVolumes,
    volumeSnapshotContents,
  ],
  read: readCron,
  toStatus,
  refusalOf: refusalOfFaults,
  plannerOf: () => planner,
  finalizerOf: () => finalizers.cron,
  isSettled: (cron) =>
    !cron.deleting &&
    !isAskedFor(cron) &&
    (cron.state.phase === 'Ready' || cron.state.phase === 'Failed') &&
    cron.state.announced === endNameOf(cron.state),
  isRetryDue: isAskedFor,
  outcomeOf,
  notesOf: (_before, after) => after.notes ?? [],
  announcementOf: (_cron, state) => endNameOf(state),
  endingOf: buildEnding,
};
