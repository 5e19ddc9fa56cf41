// The next step of a cron towards its newest version being in use. Pure.
import { cdiAnnotations } from '#shared/api/cdi/names.ts';
import { dataVolumes } from '#shared/api/cdi/data-volume.ts';
import { annotations } from '#shared/api/names.ts';
import { type Action, amend, create, type PlanContext } from '#shared/populate/actions.ts';
import { isoTime, retryHint } from '#shared/populate/state.ts';
import { notAuthorized } from '#shared/golden/source.ts';
import { shortDigest } from '#shared/golden/version.ts';
import { copiedFrom, digestOf } from '#shared/resources/data-import-cron/verified.ts';
import { countNotes } from '#shared/resources/data-import-cron/verdict.ts';
import { removeVersion, supersede } from '#shared/resources/data-import-cron/collect.ts';
import { offer } from '#shared/resources/data-import-cron/offer.ts';
import {
  type CronState,
  type CronResource,
  isRetryWanted,
  type ObservedCron,
} from '#shared/resources/data-import-cron/cron.ts';
import { formatOf } from '#shared/resources/data-import-cron/snapshot.ts';
import { buildImport, classNameOf } from '#shared/resources/data-import-cron/template.ts';
import { type CronVerdict, conclude, progressing, upToDate } from '#shared/resources/data-import-cron/verdict.ts';
import { planStorage, wantedBackIn } from '#shared/resources/data-import-cron/undelete.ts';
import { takeSnapshot, useVersion } from '#shared/resources/data-import-cron/using.ts';
import {
  classOf,
  hasSnapshot,
  hasVolume,
  impostorIn,
  isUsable,
  targetName,
} from '#shared/resources/data-import-cron/version.ts';
import { type CronStep, type Work, goOn } from '#shared/resources/data-import-cron/offer.ts';
import type { Note } from '#shared/resources/transitions.ts';

const lookForDeletedMs = 3_600_000;

/** The step of the newest version, and what becomes of the storage of all of them. */
export const plan = (cron: CronResource, observed: ObservedCron, context: PlanContext): CronStep => {
  const step = planNewest(cron, observed, context);
  const { actions, notes, deleted } = planStorage(cron, observed, context.now);
  const times = [...(step.next === undefined ? [] : [step.next]), ...deleted.map(({ until }) => Date.parse(until))];
  return {
    actions: [...actions, ...unmarked(observed), ...step.actions],
    state: {
      ...step.state,
      retention: retentionOf(observed, times, context.now),
      deleted: deleted.length === 0 ? undefined : [...deleted],
      notes: [...notes, ...(step.state.notes ?? [])],
    },
  };
};

/** A policy that is gone has left its marks on versions and DataSources: nobody else would remove them. */
const unmarked = ({ left }: ObservedCron): readonly Action[] =>
  left.map(({ type, object }) =>
    amend(type, object.metadata, { metadata: { annotations: { [annotations.deprecation]: null } } }),
  );

const isUndeletable = ({ policy }: ObservedCron): boolean => policy?.retention?.undeleteFor !== undefined;

/** What the versions were judged by, and when they are judged again; nothing where there is no policy. */
const retentionOf = (observed: ObservedCron, times: readonly number[], now: number): CronState['retention'] => {
  const { kept, unkept } = observed.storage;
  const { policy } = observed;
  const isWanted = isUndeletable(observed);
  const pending = isWanted ? unkept.length : kept.length;
  const keeps = isWanted || pending > 0;
  if (policy === undefined && !keeps) return undefined;
  // Where nobody came to see that a claim is gone.
  const next = Math.min(...times, keeps ? now + lookForDeletedMs : Number.POSITIVE_INFINITY);
  return {
    rule: policy?.rule ?? '',
    next: Number.isFinite(next) ? isoTime(next) : undefined,
    keeps: keeps || undefined,
    pending: pending || undefined,
  };
};

const planNewest = (cron: CronResource, observed: ObservedCron, context: PlanContext): CronStep => {
  const nextPoll = cron.object.metadata.annotations?.[cdiAnnotations.nextCronTime];
  const state: CronState = { ...cron.state, ...offeredNow(cron, observed), nextPoll };
  if (observed.rival !== undefined) return planRival(cron, state, observed.rival.metadata.name);
  if (cron.digest === '') return waitForDigest(cron, observed, state);
  const short = shortDigest(cron.digest);
  if ('problem' in short) return refuseDigest(cron, observed, state, short.problem);
  const name = targetName(cron, observed);
  const { actions, notes } = supersede(cron, observed, name);
  const next = { ...state, current: { name, ...digestOf(cron, observed, name) } };
  const work = { cron, observed, state: next, name, version: observed.versions.get(name) ?? {}, context };
  const step = wantedBackIn(cron, observed).has(name) ? waitForName(work) : planVersion(work);
  const all = [...notes, ...(step.state.notes ?? [])];
  return {
    ...step,
    actions: [...actions, ...step.actions],
    state: { ...step.state, notes: all, counts: countNotes(step.state.counts, all) },
  };
};

/**
 * A pass may have died, or been overtaken, between the data source and the status: where the version of the status has gone since, the one that
 * the data source stands for is in use.
 */
const offeredNow = ({ state }: CronResource, { versions, dataSource }: ObservedCron): Partial<CronState> => {
  const isFull = (name: string | undefined): boolean => isUsable(versions.get(name ?? '') ?? {});
  const { pvc, snapshot } = dataSource?.spec.source ?? {};
  const name = pvc?.name ?? snapshot?.name;
  if (state.offered === undefined || isFull(state.offered) || !isFull(name)) return {};
  return { offered: name, format: snapshot === undefined ? 'pvc' : 'snapshot' };
};

const planRival = (cron: CronResource, state: CronState, rival: string): CronStep => {
  const message = `DataSource ${cron.dataSource} is already managed by DataImportCron ${rival}: delete one of them, or name another managedDataSource`;
  const note: Note = { type: 'Warning', reason: 'ErrDataSourceAlreadyManaged', message, occurrence: rival };
  const verdict: CronVerdict = {
    phase: 'Waiting',
    progressing: progressing.none,
    upToDate: upToDate.noDigest,
    trouble: { reason: 'DataSourceAlreadyManaged', message },
  };
  return { actions: [], state: { ...conclude(cron, { ...state, offered: undefined }, verdict), notes: [note] } };
};

const isUnauthorized = ({ right }: ObservedCron): boolean => right.is === 'asked' && right.grant === undefined;

/** Nothing is imported; what is in use stays so. */
const unauthorized = ({ source, namespace }: CronResource): CronVerdict => {
  const place = source?.type === 'pvc' ? source : { account: '', namespace };
  return {
    phase: 'Waiting',
    progressing: progressing.notAuthorized,
    upToDate: upToDate.noDigest,
    trouble: {
      reason: 'NotAuthorized',
      message: notAuthorized(namespace, place.account, place.namespace ?? namespace),
    },
  };
};

const waitForDigest = (cron: CronResource, observed: ObservedCron, state: CronState): CronStep => {
  if (isUnauthorized(observed))
    return { actions: offer(cron, observed, state), state: conclude(cron, state, unauthorized(cron)) };
  const verdict: CronVerdict = { phase: 'Waiting', progressing: progressing.none, upToDate: upToDate.noDigest };
  return { actions: offer(cron, observed, state), state: conclude(cron, state, verdict) };
};

const refuseDigest = (cron: CronResource, observed: ObservedCron, state: CronState, problem: string): CronStep => {
  const message = `${problem}: "${cron.digest}"; it needs sha256:<64 hex digits>, in annotation ${cdiAnnotations.desiredDigest}`;
  const trouble = { reason: 'InvalidDigest', message };
  const verdict: CronVerdict = {
    phase: 'Waiting',
    progressing: progressing.none,
    upToDate: upToDate.outdated,
    trouble,
  };
  return { actions: offer(cron, observed, state), state: conclude(cron, state, verdict) };
};

const planVersion = (work: Work): CronStep => {
  const { version, observed, name } = work;
  const format = formatOf(observed);
  if (observed.foreign.has(name) || isImpostor(work)) return refuseName(work);
  if (format === 'snapshot' && hasSnapshot(version)) return useVersion(work, 'snapshot');
  if (format === 'pvc' && hasVolume(version)) return useVersion(work, 'pvc');
  if (hasVolume(version)) return takeSnapshot(work);
  if (version.dataVolume !== undefined) return followImport(work, version.dataVolume.status?.phase || 'Pending');
  return version.volume === undefined ? startImport(work) : waitForName(work);
};

/** A volume that somebody labelled is taken for the version, as CDI does; not where a policy asks for verified versions. */
const isImpostor = ({ observed, cron, state, version }: Work): boolean =>
  observed.policy?.verifies === true &&
  isUsable(version) &&
  impostorIn(cron, version, state.current?.digest ?? cron.digest) !== undefined;

const refuseName = (work: Work): CronStep => {
  const { name, cron, observed } = work;
  const advice = observed.foreign.has(name)
    ? `, or label it cdi.kubevirt.io/dataImportCron=${cron.ref.name} if it holds this version`
    : ', and the version is imported again';
  const message = `PVC ${name} exists and does not belong to this cron: remove it${advice}`;
  const trouble = { reason: 'NameTaken', message };
  return goOn(work, [], { phase: 'Waiting', progressing: progressing.none, upToDate: upToDate.outdated, trouble });
};

const startImport = (work: Work): CronStep => {
  const { cron, observed, state, name } = work;
  if (isUnauthorized(observed)) return goOn(work, [], { ...unauthorized(cron), upToDate: upToDate.outdated });
  const began = { ...state, handledRetryToken: cron.retryToken ?? state.handledRetryToken };
  const note: Note = {
    type: 'Normal',
    reason: 'ImportStarted',
    message: `importing ${name} (${state.current?.digest ?? cron.digest})`,
    occurrence: `import/${name}/${began.handledRetryToken ?? ''}`,
  };
  const verdict: CronVerdict = {
    phase: 'Importing',
    progressing: progressing.of('Pending'),
    upToDate: upToDate.outdated,
  };
  const step = goOn(
    { ...work, state: began },
    [create(dataVolumes, buildImport(cron, name, { ...observed, copied: copiedFrom(cron, observed, name) }))],
    verdict,
  );
  return { ...step, state: { ...step.state, notes: [note] } };
};

/** A volume of this name is on its way out, or is not bound yet. The tick looks again. */
const waitForName = (work: Work): CronStep =>
  goOn(work, [], { phase: 'Importing', progressing: progressing.of('Pending'), upToDate: upToDate.importing });

/** Its volume waits in a class that is no longer the one wanted. */
const isMisplaced = ({ cron, observed, version }: Work): boolean => {
  const wanted = observed.storageClass?.metadata.name;
  const place = classOf(version);
  const isPending = version.volume?.status?.phase !== 'Bound';
  return (
    isPending && classNameOf(cron) === undefined && wanted !== undefined && place !== undefined && place !== wanted
  );
};

const followImport = (work: Work, phase: string): CronStep => {
  const { cron, state, version, name } = work;
  const hasLostVolume = phase === 'Succeeded' || (phase === 'Failed' && state.offered === name);
  const startsOver = hasLostVolume || isMisplaced(work) || (phase === 'Failed' && isRetryWanted(cron));
  if (startsOver) {
    const verdict: CronVerdict = {
      phase: 'Importing',
      progressing: progressing.of('Pending'),
      upToDate: upToDate.importing,
    };
    return goOn(work, removeVersion(version), verdict);
  }
  if (phase === 'Failed') return failImport(work);
  if (isUnplaced(work)) return waitForClass(work);
  return goOn(work, [], { phase: 'Importing', progressing: progressing.of(phase), upToDate: upToDate.importing });
};

/** Nobody named a class, and the cluster has no default one. */
const isUnplaced = ({ cron, observed, version }: Work): boolean =>
  classNameOf(cron) === undefined && observed.storageClass === undefined && (classOf(version) ?? '') === '';

const waitForClass = (work: Work): CronStep => {
  const message = `the cluster has no default storage class: mark one as default, and ${work.name} is imported into it`;
  const trouble = { reason: 'StorageClassNotFound', message };
  return goOn(work, [], {
    phase: 'Waiting',
    progressing: progressing.of('Pending'),
    upToDate: upToDate.outdated,
    trouble,
  });
};

const failImport = (work: Work): CronStep => {
  const { cron, version, name } = work;
  const running = version.dataVolume?.status?.conditions?.find(
    ({ type, message }) => (type === 'Running' || type === 'Ready') && (message ?? '') !== '',
  );
  const message = `the import of ${name} failed: ${running?.message ?? 'see the DataVolume'}; a new digest is imported automatically, for this one ${retryHint}`;
  const verdict: CronVerdict = {
    phase: 'Failed',
    progressing: progressing.of('Failed'),
    upToDate: upToDate.outdated,
    trouble: { reason: 'ImportFailed', message },
  };
  const step = goOn(work, [], verdict);
  const note: Note = {
    type: 'Warning',
    reason: 'ImportFailed',
    message,
    occurrence: `failed/${name}/${cron.retryToken ?? ''}`,
  };
  return { ...step, state: { ...step.state, notes: cron.state.phase === 'Failed' ? [] : [note] } };
};
