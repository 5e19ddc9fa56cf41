// A volume that begins as a copy of another one of its namespace: choose how, take a snapshot where there is none, make the claim.
import type { StorageClass, TypedLocalReference } from '#shared/api/foreign/core.ts';
import { volumeSnapshots } from '#shared/api/foreign/snapshot.ts';
import { create } from '#shared/backends/actions.ts';
import type { Plan, PlanContext } from '#shared/backends/backend.ts';
import { failedState, storageWaitingState } from '#shared/backends/state.ts';
import { type CloneTarget, chooseClone } from '#shared/populate/clone.ts';
import { type ClaimProfile, cloneStrategyOf } from '#shared/populate/profile.ts';
import { buildSnapshot } from '#shared/populate/snapshot.ts';
import { buildClaim, makeClaim, modesFor, sizeFor } from '#shared/resources/volume/making.ts';
import type { ReadyOrigin } from '#shared/resources/volume/origin.ts';
import type { CloneRecord } from '#shared/resources/volume/record.ts';
import { cloneName } from '#shared/resources/volume/elsewhere-seen.ts';
import type { VolumeSeen } from '#shared/resources/volume/seen.ts';
import { rest } from '#shared/resources/volume/state.ts';
import type { Volume } from '#shared/resources/volume/volume.ts';

export type Cloning = VolumeSeen & { readonly origin: ReadyOrigin; readonly storageClass: StorageClass };

/** `obstacle`: why the storage may not do it by its own means. */
export const planClone = (volume: Volume, seen: Cloning, context: PlanContext, obstacle?: string): Plan => {
  const { origin, storageClass, sourceSnapshot } = seen;
  const { clone, accessModes } = origin;
  const modes = modesFor(volume, seen, { volumeMode: clone.volumeMode, ...(accessModes && { accessModes }) });
  const target = {
    storageClass,
    ...modes,
    bytes: sizeFor(volume, modes.volumeMode, storageClass, context) ?? clone.bytes,
    strategy: cloneStrategyOf(storageClass, seen.profile),
    overhead: context.settings.filesystemOverhead,
    obstacle,
  };
  const hasSnapshot = clone.hasSnapshot || sourceSnapshot !== undefined;
  const choice = chooseClone({ ...clone, hasSnapshot }, target);
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

type Choice = Pick<CloneRecord, 'strategy' | 'because'>;

const needsSnapshot = ({ strategy }: Choice, { origin, sourceSnapshot }: Cloning): boolean =>
  strategy === 'snapshot' && origin.snapshot === undefined && sourceSnapshot?.status?.readyToUse !== true;

interface Decided {
  readonly record: CloneRecord;
  readonly target: CloneTarget & ClaimProfile;
  readonly context: PlanContext;
}

const makeClone = (volume: Volume, { origin, storageClass }: Cloning, { record, target, context }: Decided): Plan => {
  const claim = buildClaim(volume, {
    className: storageClass.metadata.name,
    volumeMode: target.volumeMode,
    bytes: target.bytes,
    accessModes: target.accessModes,
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
        name: origin.snapshot ?? cloneName(volume),
      };
  }
};

const planSourceSnapshot = (volume: Volume, { origin, sourceSnapshot }: Cloning, context: PlanContext): Plan => {
  const name = cloneName(volume);
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
    state: storageWaitingState(
      volume,
      next,
      { ...step, phase: 'Cloning', child: sourceSnapshot, isComplaining: error !== undefined },
      context,
    ),
  };
};
