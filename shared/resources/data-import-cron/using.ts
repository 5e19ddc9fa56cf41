// A version whose bytes are there: snapshot it where its class asks for one, and put it to use. Pure; called by plan.ts.
import { cdiAnnotations, travellingLabels } from '#shared/api/cdi/names.ts';
import { dataImportCronKind } from '#shared/api/cdi/data-import-cron.ts';
import { type VolumeSnapshot, volumeSnapshots } from '#shared/api/foreign/snapshot.ts';
import { type Action, create, patch, remove } from '#shared/populate/actions.ts';
import { isoTime } from '#shared/populate/state.ts';
import { collect, dropOtherForm, isOtherFormUsed } from '#shared/resources/data-import-cron/collect.ts';
import { buildVersionSnapshot, restoreSizeMark } from '#shared/resources/data-import-cron/snapshot.ts';
import type { CronState, ObservedVersion } from '#shared/resources/data-import-cron/cron.ts';
import { type CronVerdict, progressing, upToDate } from '#shared/resources/data-import-cron/verdict.ts';
import { dropProvisional, askedMark } from '#shared/resources/data-import-cron/verified.ts';
import { classOf } from '#shared/resources/data-import-cron/version.ts';
import type { SourceFormat } from '#shared/resources/data-source/point.ts';
import { type CronStep, type Work, goOn } from '#shared/resources/data-import-cron/offer.ts';
import type { Note } from '#shared/resources/transitions.ts';
import { persistentVolumeClaims } from '#shared/api/foreign/core.ts';
import type { KubeObject, ResourceType } from '#shared/api/object.ts';

/** One of another class, which is not ready, makes room. */
const snapshotActions = (wanted: VolumeSnapshot, there: VolumeSnapshot | undefined): readonly Action[] => {
  if (there === undefined) return [create(volumeSnapshots, wanted)];
  const isRight = there.spec.volumeSnapshotClassName === wanted.spec.volumeSnapshotClassName;
  return isRight ? [] : remove(volumeSnapshots, there);
};

export const takeSnapshot = (work: Work): CronStep => {
  const snapshot = buildVersionSnapshot(work.cron, work.observed, work.version);
  if (snapshot === undefined) return useVersion(work, 'pvc');
  const actions = snapshotActions(snapshot, work.version.snapshot);
  return goOn(work, actions, { phase: 'Importing', progressing: progressing.snapshot, upToDate: upToDate.snapshot });
};

/** The one before was in use until now. */
const touchPrevious = ({ observed, state, context, name }: Work): readonly Action[] => {
  const version = state.offered === undefined ? undefined : observed.versions.get(state.offered);
  if (version === undefined || state.offered === name) return [];
  return markLastUse(version, state.format ?? 'pvc', context.now - 1);
};

const noteClass = ({ cron, observed, version }: Work): readonly Action[] => {
  const place = classOf(version) ?? observed.storageClass?.metadata.name;
  if (place === undefined || cron.object.metadata.annotations?.[cdiAnnotations.storageClass] === place) return [];
  return [
    patch(dataImportCronKind.type, cron.object, {
      metadata: { annotations: { [cdiAnnotations.storageClass]: place } },
    }),
  ];
};

const inUse: CronVerdict = { phase: 'Ready', progressing: progressing.none, upToDate: upToDate.yes };

/** Its other form goes once no channel of a policy points to it. */
const converting: CronVerdict = { phase: 'Importing', progressing: progressing.snapshot, upToDate: upToDate.snapshot };

/** The state once a version is in use in this form. */
const offeredState = (
  { cron, state, name, version, context }: Work,
  format: SourceFormat,
  isNew: boolean,
): CronState => ({
  ...state,
  offered: name,
  format,
  snapshotClass: format === 'snapshot' ? version.snapshot?.spec.volumeSnapshotClassName : undefined,
  importedAt: isNew || state.importedAt === undefined ? isoTime(context.now) : state.importedAt,
  handledRetryToken: cron.retryToken ?? state.handledRetryToken,
});

export const useVersion = (work: Work, format: SourceFormat): CronStep => {
  const { cron, observed, state, name, version, context } = work;
  const isNew = state.offered !== name || state.format !== format;
  const offered = offeredState(work, format, isNew);
  const collected = collect(cron, observed, name, context.now);
  const touched = [...(isNew ? touchPrevious(work) : []), ...markUsed(work, format, isNew)];
  const isConverting = isOtherFormUsed(observed, name, format);
  const step = goOn({ ...work, state: offered }, touched, isConverting ? converting : inUse);
  const note: Note = {
    type: 'Normal',
    reason: 'VersionImported',
    message: `${name} (${state.current?.digest ?? cron.digest}) is ${observed.policy === undefined ? 'in use' : `there for the channels of GoldenImagePolicy ${observed.policy.name}`}`,
    // By the status as it was read: a step that is taken again tells nothing twice.
    occurrence: `imported/${name}/${format}/${state.importedAt ?? 'first'}`,
  };
  return {
    next: collected.next,
    actions: [
      ...step.actions,
      ...(isConverting ? [] : dropOtherForm(version, format)),
      ...collected.actions,
      ...dropProvisional(cron, observed, name),
      ...noteClass(work),
    ],
    state: { ...step.state, notes: [...(isNew ? [note] : []), ...collected.notes] },
  };
};

// What is noted on a version in use, on its volume and its snapshot: one write for each, since the second of two would find the object changed by the first.
// Pure; called by using.ts.

type Texts = Readonly<Record<string, string>>;

interface Marks {
  readonly labels?: Texts;
  readonly annotations?: Texts;
}

const lacks = (found: Texts = {}, wanted: Texts = {}): boolean =>
  Object.entries(wanted).some(([name, value]) => found[name] !== value);

const mark = <T extends KubeObject>(type: ResourceType<T>, object: T | undefined, marks: Marks): readonly Action[] => {
  if (object === undefined) return [];
  const { labels, annotations } = object.metadata;
  return lacks(labels, marks.labels) || lacks(annotations, marks.annotations)
    ? [patch(type, object, { metadata: marks })]
    : [];
};

/** When it was last what the cron offered, in milliseconds, so that successive versions stay in order. `now`: milliseconds since the epoch. */
const useMark = (now: number): Texts => ({ [cdiAnnotations.lastUseTime]: new Date(now).toISOString() });

const markLastUse = ({ volume, snapshot }: ObservedVersion, format: SourceFormat, now: number): readonly Action[] =>
  format === 'snapshot'
    ? mark(volumeSnapshots, snapshot, { annotations: useMark(now) })
    : mark(persistentVolumeClaims, volume, { annotations: useMark(now) });

/** `isNew`: it comes into use now. */
const markUsed = (
  { cron, observed, version, context }: Work,
  format: SourceFormat,
  isNew: boolean,
): readonly Action[] => {
  const labels = askedMark(cron, observed, version);
  const used = (form: SourceFormat): Texts => (isNew && form === format ? useMark(context.now) : {});
  const size = format === 'snapshot' ? restoreSizeMark(cron, version) : {};
  return [
    ...mark(persistentVolumeClaims, version.volume, { labels, annotations: used('pvc') }),
    ...mark(volumeSnapshots, version.snapshot, {
      // How to run the disk: its volume may be removed, and the data source and its disks copy them from what is left.
      labels: { ...travellingLabels(version.volume?.metadata.labels), ...labels },
      annotations: { ...used('snapshot'), ...size },
    }),
  ];
};
