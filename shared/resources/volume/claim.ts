// A volume without its claim: wait for the source, choose how to clone it, and make the claim together with the Job that fills it.
import {
  type PersistentVolumeClaim,
  type StorageClass,
  type TypedLocalReference,
  type VolumeMode,
  jobs,
  persistentVolumeClaims,
} from '#shared/api/foreign/core.ts';
import { volumeSnapshots } from '#shared/api/foreign/snapshot.ts';
import { type Action, create } from '#shared/backends/actions.ts';
import type { Plan, PlanContext } from '#shared/backends/backend.ts';
import { planInspection, withJob } from '#shared/backends/inspecting.ts';
import { failedState, waitingState } from '#shared/backends/state.ts';
import { type CloneTarget, chooseClone } from '#shared/populate/clone.ts';
import { claimProfileOf } from '#shared/populate/profile.ts';
import { buildSnapshot } from '#shared/populate/snapshot.ts';
import { volumeBytesFor } from '#shared/populate/sizing.ts';
import { buildVolume } from '#shared/populate/volume.ts';
import { buildFillJob, buildLookJob } from '#shared/resources/volume/job.ts';
import type { ReadyOrigin } from '#shared/resources/volume/origin.ts';
import { type CloneRecord, recordAnnotation } from '#shared/resources/volume/record.ts';
import { type VolumeSeen, needsInspection, sourceSnapshotName } from '#shared/resources/volume/seen.ts';
import { isHeldBack, rest } from '#shared/resources/volume/state.ts';
import type { Volume } from '#shared/resources/volume/volume.ts';
import type { Inspection } from '#shared/transfer/report.ts';

export const planClaim = (volume: Volume, seen: VolumeSeen, context: PlanContext): Plan => {
  const { origin, storageClass } = seen;
  if (origin?.is === 'waiting') return rest(volume, origin);
  if (storageClass === undefined) return planNoClass(volume, origin, context);
  if (origin === undefined) return planEmpty(volume, { ...seen, storageClass }, context);
  return planClone(volume, { ...seen, origin, storageClass }, context);
};

const planNoClass = (volume: Volume, origin: ReadyOrigin | undefined, context: PlanContext): Plan => {
  const name = volume.claim.className ?? origin?.className;
  const message =
    name === undefined
      ? 'no storage class is named and the cluster has no default one: name one in spec, or mark one as default'
      : `storage class "${name}" does not exist: create it, or make this object anew with another`;
  const step = { phase: 'Pending', reason: 'StorageClassNotFound', message } as const;
  return { actions: [], state: waitingState(volume, volume.state, step, context) };
};

type Emptied = VolumeSeen & { readonly storageClass: StorageClass };

/** A claim that a Job fills from a source of bytes. */
const planEmpty = (volume: Volume, seen: Emptied, context: PlanContext): Plan => {
  const { inspectJob: job, pods, storageClass } = seen;
  if (!needsInspection(volume)) return makeEmpty(volume, storageClass, {}, context);
  const looked = planInspection(volume, { job, pods, build: () => buildLookJob(volume, context.settings) }, context);
  if (looked.is === 'planned') return looked.plan;
  const { diskBytes, inspection, state } = looked;
  const sized = { ...volume, state, claim: { ...volume.claim, diskBytes } };
  return makeEmpty(sized, storageClass, { inspected: inspection }, context);
};

const makeEmpty = (
  volume: Volume,
  storageClass: StorageClass,
  { inspected }: { readonly inspected?: Inspection },
  context: PlanContext,
): Plan => {
  const profile = claimProfileOf(storageClass);
  const volumeMode = volume.claim.volumeMode ?? profile.volumeMode;
  const claim = buildClaim(volume, {
    storageClass,
    volumeMode,
    accessModes: volume.claim.accessModes ?? profile.accessModes,
    bytes: bytesFor(volume, volumeMode, context) ?? 0,
    inspected,
  });
  return makeClaim(volume, { claim, storageClass }, context);
};

type Cloning = VolumeSeen & { readonly origin: ReadyOrigin; readonly storageClass: StorageClass };

const planClone = (volume: Volume, seen: Cloning, context: PlanContext): Plan => {
  const { origin, storageClass, sourceSnapshot } = seen;
  if (origin.namespace !== volume.ref.namespace) return planElsewhere(volume, origin);
  const volumeMode = volume.claim.volumeMode ?? origin.clone.volumeMode;
  const target = {
    storageClass,
    volumeMode,
    bytes: bytesFor(volume, volumeMode, context) ?? origin.clone.bytes,
    overhead: context.settings.filesystemOverhead,
  };
  const hasSnapshot = origin.clone.hasSnapshot || sourceSnapshot !== undefined;
  const choice = chooseClone({ ...origin.clone, hasSnapshot }, target);
  switch (choice.is) {
    case 'refused':
      return { actions: [], state: failedState(volume.state, choice.reason, choice.message) };
    case 'waiting':
      return rest(volume, choice);
    case 'chosen':
      return needsSnapshot(choice, seen)
        ? planSourceSnapshot(volume, seen, context)
        : makeClone(volume, seen, { record: recordFor(choice, origin), target, context });
  }
};

const planElsewhere = ({ state, ref }: Volume, { clone, namespace }: ReadyOrigin): Plan => {
  const where = `${clone.what} lies in namespace ${namespace}, and this object in ${ref.namespace ?? ''}`;
  const message = `${where}: clones across namespaces are not served by this installation`;
  return { actions: [], state: failedState(state, 'SourceElsewhere', message) };
};

type Choice = Pick<CloneRecord, 'strategy' | 'because'>;

const needsSnapshot = ({ strategy }: Choice, { origin, sourceSnapshot }: Cloning): boolean =>
  strategy === 'snapshot' && origin.snapshot === undefined && sourceSnapshot?.status?.readyToUse !== true;

interface Decided {
  readonly record: CloneRecord;
  readonly target: CloneTarget;
  readonly context: PlanContext;
}

const makeClone = (volume: Volume, { origin, storageClass }: Cloning, { record, target, context }: Decided): Plan => {
  const claim = buildClaim(volume, {
    ...target,
    accessModes: volume.claim.accessModes ?? origin.accessModes ?? claimProfileOf(storageClass).accessModes,
    record,
    dataSource: dataSourceOf(volume, record, origin),
  });
  return makeClaim(volume, { claim, storageClass, record }, context);
};

const recordFor = (choice: Choice, { claim, clone, population }: ReadyOrigin): CloneRecord => ({
  strategy: choice.strategy,
  because: choice.because,
  ...(choice.strategy === 'copy' && claim !== undefined
    ? { from: { name: claim.metadata.name, volumeMode: clone.volumeMode } }
    : {}),
  population: population ?? {
    inspection: { format: 'raw', compression: 'none', virtualSize: clone.diskBytes },
    digests: {},
  },
});

const dataSourceOf = (
  volume: Volume,
  { strategy }: CloneRecord,
  origin: ReadyOrigin,
): TypedLocalReference | undefined => {
  switch (strategy) {
    case 'copy':
      return undefined;
    case 'csi-clone':
      return { kind: 'PersistentVolumeClaim', name: origin.claim?.metadata.name ?? '' };
    case 'snapshot':
      return {
        apiGroup: 'snapshot.storage.k8s.io',
        kind: 'VolumeSnapshot',
        name: origin.snapshot ?? sourceSnapshotName(volume),
      };
  }
};

const planSourceSnapshot = (volume: Volume, { origin, sourceSnapshot }: Cloning, context: PlanContext): Plan => {
  const name = sourceSnapshotName(volume);
  const error = sourceSnapshot?.status?.error?.message;
  const step =
    error === undefined
      ? { reason: 'Snapshotting', message: `taking a snapshot of ${origin.clone.what}` }
      : { reason: 'SnapshotFailed', message: `the snapshot of ${origin.clone.what} is in error: ${error}` };
  const next = { ...volume.state, children: { ...volume.state.children, snapshot: name } };
  const { snapshotClass = '' } = origin.clone;
  const claimName = origin.claim?.metadata.name ?? '';
  return {
    actions:
      sourceSnapshot === undefined
        ? [create(volumeSnapshots, buildSnapshot(volume.ref, name, claimName, snapshotClass))]
        : [],
    state: waitingState(volume, next, { phase: 'Cloning', ...step }, context),
  };
};

const bytesFor = ({ claim }: Volume, mode: VolumeMode, { settings }: PlanContext): number | undefined =>
  claim.bytes ??
  (claim.diskBytes === undefined ? undefined : volumeBytesFor(claim.diskBytes, mode, settings.filesystemOverhead));

interface Shape {
  readonly storageClass: StorageClass;
  readonly volumeMode: VolumeMode;
  readonly accessModes: NonNullable<PersistentVolumeClaim['spec']['accessModes']>;
  readonly bytes: number;
  readonly record?: CloneRecord;
  readonly dataSource?: TypedLocalReference | undefined;
  /** What told its size; left out where the user did. */
  readonly inspected?: Inspection | undefined;
}

const buildClaim = ({ ref, claim }: Volume, shape: Shape): PersistentVolumeClaim => {
  const built = buildVolume({
    owner: ref,
    role: 'disk',
    name: claim.name,
    storageClassName: shape.storageClass.metadata.name,
    volumeMode: shape.volumeMode,
    accessModes: shape.accessModes,
    bytes: shape.bytes,
    inspected: shape.inspected,
    annotations: {
      ...claim.annotations,
      ...(shape.record === undefined ? {} : recordAnnotation(shape.record)),
    },
  });
  return {
    ...built,
    metadata: { ...built.metadata, labels: { ...claim.labels, ...built.metadata.labels } },
    spec: { ...built.spec, ...(shape.dataSource === undefined ? {} : { dataSource: shape.dataSource }) },
  };
};

interface Made {
  readonly claim: PersistentVolumeClaim;
  readonly storageClass: StorageClass;
  readonly record?: CloneRecord;
}

const makeClaim = (volume: Volume, { claim, storageClass, record }: Made, context: PlanContext): Plan => {
  const isFilledByJob = record === undefined || record.strategy === 'copy';
  const isFilledNow = isFilledByJob && !isHeldBack(volume, storageClass);
  const job = isFilledNow ? buildFillJob(volume, claim, context.settings) : undefined;
  const actions: readonly Action[] = [
    create(persistentVolumeClaims, claim),
    ...(job === undefined ? [] : [create(jobs, job)]),
  ];
  const next = {
    ...withJob(volume.state, { volume: claim.metadata.name, ...(job === undefined ? {} : { job: job.metadata.name }) }),
    storageClassName: storageClass.metadata.name,
    clone: record === undefined ? undefined : { strategy: record.strategy, because: record.because },
  };
  const step = { phase: 'Cloning', reason: 'Starting', message: 'the volume is being made' } as const;
  return { actions, state: waitingState(volume, next, step, context) };
};
