// The next step of a cron towards its newest version being in use. Pure.
import { cdiAnnotations } from '#shared/api/cdi/names.ts';
import { persistentVolumeClaims } from '#shared/api/foreign/core.ts';
import { dataVolumes } from '#shared/api/cdi/data-volume.ts';
import { volumeSnapshots } from '#shared/api/foreign/snapshot.ts';
import { dataImportCronKind } from '#shared/api/cdi/data-import-cron.ts';
import { type Action, create, patch } from '#shared/backends/actions.ts';
import type { PlanContext } from '#shared/backends/backend.ts';
import { isoTime, retryHint } from '#shared/backends/state.ts';
import { shortDigest } from '#shared/golden/version.ts';
import { removeVersion, collect, dropOtherForm, supersede } from '#shared/resources/data-import-cron/collect.ts';
import { isKept, offer } from '#shared/resources/data-import-cron/offer.ts';
import type { CronSeen, SeenVersion } from '#shared/resources/data-import-cron/seen.ts';
import { type CronState, type CronSubject, isRetryWanted } from '#shared/resources/data-import-cron/subject.ts';
import { buildVersionSnapshot, formatOf } from '#shared/resources/data-import-cron/snapshot.ts';
import { buildImport, classNameOf } from '#shared/resources/data-import-cron/template.ts';
import { type Verdict, conclude, progressing, upToDate } from '#shared/resources/data-import-cron/verdict.ts';
import { classOf, hasSnapshot, hasVolume, targetName } from '#shared/resources/data-import-cron/version.ts';
import type { Step } from '#shared/resources/driven.ts';
import type { Note } from '#shared/resources/transitions.ts';

type CronStep = Step<CronState>;

export const plan = (cron: CronSubject, seen: CronSeen, context: PlanContext): CronStep => {
  const state: CronState = { ...cron.state, nextPoll: cron.object.metadata.annotations?.[cdiAnnotations.nextCronTime] };
  if (seen.rival !== undefined) return planRival(cron, state, seen.rival.metadata.name);
  if (cron.digest === '') return waitForDigest(cron, seen, state);
  const short = shortDigest(cron.digest);
  if ('problem' in short) return refuseDigest(cron, seen, state, short.problem);
  const name = targetName(cron, seen);
  const { actions, notes } = supersede(cron, seen, name);
  const next = { ...state, current: { name, digest: cron.digest } };
  const step = planVersion({ cron, seen, state: next, name, version: seen.versions.get(name) ?? {}, context });
  return {
    actions: [...actions, ...step.actions],
    state: { ...step.state, notes: [...notes, ...(step.state.notes ?? [])] },
  };
};

const planRival = (cron: CronSubject, state: CronState, rival: string): CronStep => {
  const message = `DataSource ${cron.dataSource} is already managed by DataImportCron ${rival}: delete one of them, or name another managedDataSource`;
  const note: Note = { type: 'Warning', reason: 'ErrDataSourceAlreadyManaged', message, occurrence: rival };
  const verdict: Verdict = {
    phase: 'Waiting',
    progressing: progressing.none,
    upToDate: upToDate.noDigest,
    trouble: { reason: 'DataSourceAlreadyManaged', message },
  };
  return { actions: [], state: { ...conclude(cron, { ...state, offered: undefined }, verdict), notes: [note] } };
};

const waitForDigest = (cron: CronSubject, seen: CronSeen, state: CronState): CronStep => {
  const verdict: Verdict = { phase: 'Waiting', progressing: progressing.none, upToDate: upToDate.noDigest };
  return { actions: offer(cron, seen, state), state: conclude(cron, state, verdict) };
};

const refuseDigest = (cron: CronSubject, seen: CronSeen, state: CronState, problem: string): CronStep => {
  const message = `${problem}: "${cron.digest}"; it needs sha256:<64 hex digits>, in annotation ${cdiAnnotations.desiredDigest}`;
  const trouble = { reason: 'InvalidDigest', message };
  const verdict: Verdict = { phase: 'Waiting', progressing: progressing.none, upToDate: upToDate.outdated, trouble };
  return { actions: offer(cron, seen, state), state: conclude(cron, state, verdict) };
};

/** One version on its way. */
interface Work {
  readonly cron: CronSubject;
  readonly seen: CronSeen;
  readonly state: CronState;
  readonly name: string;
  readonly version: SeenVersion;
  readonly context: PlanContext;
}

const planVersion = (work: Work): CronStep => {
  const { version, seen, name } = work;
  const format = formatOf(seen);
  if (seen.foreign.has(name)) return refuseName(work);
  if (format === 'snapshot' && hasSnapshot(version)) return useVersion(work, 'snapshot');
  if (format === 'pvc' && hasVolume(version)) return useVersion(work, 'pvc');
  if (hasVolume(version)) return takeSnapshot(work);
  if (version.dataVolume !== undefined) return followImport(work, version.dataVolume.status?.phase || 'Pending');
  return version.volume === undefined ? startImport(work) : waitForName(work);
};

/** The version in use stays so, whatever becomes of the next one. */
const goOn = ({ cron, seen, state }: Work, actions: readonly Action[], verdict: Verdict): CronStep => ({
  actions: [...actions, ...offer(cron, seen, state)],
  state: conclude(cron, state, adviseKept(cron, seen, verdict)),
});

const adviseKept = (cron: CronSubject, { dataSource }: CronSeen, verdict: Verdict): Verdict => {
  if (verdict.trouble !== undefined || dataSource === undefined || !isKept(cron, dataSource)) return verdict;
  const message = `DataSource ${cron.dataSource} is somebody else's and in use: label it cdi.kubevirt.io/dataImportCron=${cron.ref.name} to have it follow this cron`;
  return { ...verdict, trouble: { reason: 'DataSourceUnmanaged', message } };
};

const refuseName = (work: Work): CronStep => {
  const message = `PVC ${work.name} exists and is none of this cron's: remove it, or label it cdi.kubevirt.io/dataImportCron=${work.cron.ref.name} if it holds this version`;
  const trouble = { reason: 'NameTaken', message };
  return goOn(work, [], { phase: 'Waiting', progressing: progressing.none, upToDate: upToDate.outdated, trouble });
};

const startImport = (work: Work): CronStep => {
  const { cron, seen, state, name } = work;
  const began = { ...state, handledRetryToken: cron.retryToken ?? state.handledRetryToken };
  const note: Note = {
    type: 'Normal',
    reason: 'ImportStarted',
    message: `importing ${name} (${cron.digest})`,
    occurrence: `import/${name}/${began.handledRetryToken ?? ''}`,
  };
  const verdict: Verdict = { phase: 'Importing', progressing: progressing.of('Pending'), upToDate: upToDate.outdated };
  const step = goOn({ ...work, state: began }, [create(dataVolumes, buildImport(cron, name, seen.profile))], verdict);
  return { ...step, state: { ...step.state, notes: [note] } };
};

/** A volume of this name is on its way out, or is not bound yet. The tick looks again. */
const waitForName = (work: Work): CronStep =>
  goOn(work, [], { phase: 'Importing', progressing: progressing.of('Pending'), upToDate: upToDate.importing });

/** Its volume waits in a class that is no longer the one wanted. */
const isMisplaced = ({ cron, seen, version }: Work): boolean => {
  const wanted = seen.storageClass?.metadata.name;
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
    const verdict: Verdict = {
      phase: 'Importing',
      progressing: progressing.of('Pending'),
      upToDate: upToDate.importing,
    };
    return goOn(work, removeVersion(version), verdict);
  }
  if (phase === 'Failed') return failImport(work);
  return goOn(work, [], { phase: 'Importing', progressing: progressing.of(phase), upToDate: upToDate.importing });
};

const failImport = (work: Work): CronStep => {
  const { cron, version, name } = work;
  const told = version.dataVolume?.status?.conditions?.find(
    ({ type, message }) => (type === 'Running' || type === 'Ready') && (message ?? '') !== '',
  );
  const message = `the import of ${name} failed: ${told?.message ?? 'see the DataVolume'}; a new digest is imported by itself, for this one ${retryHint}`;
  const verdict: Verdict = {
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

const takeSnapshot = (work: Work): CronStep => {
  const snapshot = buildVersionSnapshot(work.cron, work.seen, work.version);
  if (snapshot === undefined) return useVersion(work, 'pvc');
  const actions = work.version.snapshot === undefined ? [create(volumeSnapshots, snapshot)] : [];
  return goOn(work, actions, { phase: 'Importing', progressing: progressing.snapshot, upToDate: upToDate.snapshot });
};

/** When it was last what the cron offered; in milliseconds, so that successive versions stay in order. */
const touch = ({ version, context }: Work, format: 'pvc' | 'snapshot'): readonly Action[] => {
  const change = { metadata: { annotations: { [cdiAnnotations.lastUseTime]: new Date(context.now).toISOString() } } };
  if (format === 'snapshot')
    return version.snapshot === undefined ? [] : [patch(volumeSnapshots, version.snapshot, change)];
  return version.volume === undefined ? [] : [patch(persistentVolumeClaims, version.volume, change)];
};

/** The one before was in use until now. */
const touchPrevious = ({ seen, state, context, ...work }: Work): readonly Action[] => {
  const version = state.offered === undefined ? undefined : seen.versions.get(state.offered);
  if (version === undefined || state.offered === work.name) return [];
  const earlier = { ...context, now: context.now - 1 };
  return touch({ ...work, seen, state, version, context: earlier }, state.format ?? 'pvc');
};

const noteClass = ({ cron, seen, version }: Work): readonly Action[] => {
  const place = classOf(version) ?? seen.storageClass?.metadata.name;
  if (place === undefined || cron.object.metadata.annotations?.[cdiAnnotations.storageClass] === place) return [];
  return [
    patch(dataImportCronKind.type, cron.object, {
      metadata: { annotations: { [cdiAnnotations.storageClass]: place } },
    }),
  ];
};

const useVersion = (work: Work, format: 'pvc' | 'snapshot'): CronStep => {
  const { cron, seen, state, name, version, context } = work;
  const isNew = state.offered !== name || state.format !== format;
  const importedAt = isNew || state.importedAt === undefined ? isoTime(context.now) : state.importedAt;
  const offered: CronState = {
    ...state,
    offered: name,
    format,
    importedAt,
    handledRetryToken: cron.retryToken ?? state.handledRetryToken,
  };
  const collected = collect(cron, seen, name);
  const touched = isNew ? [...touchPrevious(work), ...touch(work, format)] : [];
  const step = goOn({ ...work, state: offered }, touched, {
    phase: 'Ready',
    progressing: progressing.none,
    upToDate: upToDate.yes,
  });
  const note: Note = {
    type: 'Normal',
    reason: 'VersionImported',
    message: `${name} (${cron.digest}) is in use`,
    occurrence: `imported/${name}/${importedAt}`,
  };
  return {
    actions: [...step.actions, ...dropOtherForm(version, format), ...collected.actions, ...noteClass(work)],
    state: { ...step.state, notes: [...(isNew ? [note] : []), ...collected.notes] },
  };
};
