// Removes the children of a volume: all of them when it is deleted, the useless ones when its user restarts it. Pure.
import { type PersistentVolumeClaim, persistentVolumeClaims } from '#shared/api/foreign/core.ts';
import { volumeSnapshots } from '#shared/api/foreign/snapshot.ts';
import type { KubeObject } from '#shared/api/object.ts';
import { type Action, type Plan, type PlanContext, remove, removeJob } from '#shared/populate/actions.ts';
import { populationOf } from '#shared/populate/population.ts';
import { describeChild, restartingState, terminatingState } from '#shared/populate/state.ts';
import { leftThere } from '#shared/populate/volume/elsewhere.ts';
import type { ObservedVolume } from '#shared/populate/volume/observed.ts';
import { isWhole } from '#shared/populate/volume/state.ts';
import type { Volume } from '#shared/populate/volume/volume.ts';

const isWorthKeeping = (claim: PersistentVolumeClaim | undefined): boolean =>
  claim !== undefined && populationOf(claim) !== undefined && isWhole(claim);

/**
 * Children that a retry removes: Jobs, a claim that is not filled, a snapshot that failed. A filled and verified claim is kept together with
 * its Jobs: its bytes are never fetched twice, and while the names of the Jobs are taken no stale pass can fill it again.
 */
const dirtyPart = (observed: ObservedVolume): ObservedVolume => {
  if (!isWorthKeeping(observed.claim)) return observed;
  const isSnapshotBroken = observed.snapshot?.status?.error !== undefined;
  return { pods: [], snapshot: isSnapshotBroken ? observed.snapshot : undefined };
};

const childrenOf = (volume: Volume, observed: ObservedVolume): readonly KubeObject[] => {
  const { stage } = observed;
  const there =
    stage?.volume === undefined
      ? [stage?.claim, stage?.job, stage?.sourceSnapshot, stage?.restored, ...(stage?.pods ?? [])]
      : [];
  return [
    observed.inspectJob,
    observed.job,
    ...(observed.readers ?? []),
    ...observed.pods,
    observed.snapshot,
    observed.sourceSnapshot,
    ownClaim(volume, observed),
    observed.spool,
    observed.restored,
    observed.prime,
    ...there,
  ].filter((child) => child !== undefined);
};

/** A claim that another client created to be filled stays. */
const ownClaim = ({ claim: { fills } }: Volume, { claim }: ObservedVolume) => (fills === undefined ? claim : undefined);

const removeAll = (volume: Volume, observed: ObservedVolume): readonly Action[] => [
  ...removeJob(observed.inspectJob),
  ...removeJob(observed.job),
  ...(observed.readers ?? []).flatMap(removeJob),
  ...remove(volumeSnapshots, observed.snapshot),
  ...remove(volumeSnapshots, observed.sourceSnapshot),
  ...remove(persistentVolumeClaims, ownClaim(volume, observed)),
  ...remove(persistentVolumeClaims, observed.spool),
  ...remove(persistentVolumeClaims, observed.restored),
  ...remove(persistentVolumeClaims, observed.prime),
  ...leftThere(observed.stage),
];

/** Whether a restart must remove children first. */
export const isDirty = (volume: Volume, observed: ObservedVolume): boolean =>
  childrenOf(volume, dirtyPart(observed)).length > 0;

/** `undefined`: the restart can proceed. */
export const planRestart = (volume: Volume, observed: ObservedVolume, context: PlanContext): Plan | undefined => {
  const dirty = dirtyPart(observed);
  const left = childrenOf(volume, dirty);
  return left.length === 0
    ? undefined
    : { actions: removeAll(volume, dirty), state: restartingState(volume, left, context) };
};

/** The next step of removal. Pods count too: the name is free only when no pod writes any more. */
export const planRemoval = (volume: Volume, observed: ObservedVolume): Plan & { readonly removed: boolean } => {
  const left = childrenOf(volume, observed);
  const message = left.length === 0 ? 'removed' : `waiting for ${left.map(describeChild).join(', ')} to go`;
  return {
    actions: removeAll(volume, observed),
    state: terminatingState(volume.state, 'Terminating', message),
    removed: left.length === 0,
  };
};
