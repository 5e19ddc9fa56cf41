// A copy of a source in another namespace. It is made there, by every means of the storage there, and its persistent volume is handed over: no
// byte crosses the network for it, and no port is opened. Pure.
import { type PersistentVolumeClaim, persistentVolumeClaims } from '#shared/api/foreign/core.ts';
import { volumeSnapshots } from '#shared/api/foreign/snapshot.ts';
import { movedTo } from '#shared/api/object.ts';
import { type Action, remove, removeJob, type Plan, type PlanContext } from '#shared/populate/actions.ts';
import { cloneName } from '#shared/populate/clone/plan.ts';
import type { ImageState } from '#shared/populate/filled.ts';
import { waitingState } from '#shared/populate/state.ts';
import { populationOf } from '#shared/populate/population.ts';
import { planClone } from '#shared/populate/volume/cloning.ts';
import type { ObservedStage, Orphans } from '#shared/populate/volume/elsewhere-observed.ts';
import { planFilling } from '#shared/populate/volume/filling.ts';
import { planArrival, planDeparture, releaseAction } from '#shared/populate/volume/handover.ts';
import { recordOf } from '#shared/populate/clone/strategy.ts';
import type { ObservedVolume } from '#shared/populate/volume/observed.ts';
import { noClass, rest } from '#shared/populate/volume/state.ts';
import type { Volume } from '#shared/populate/volume/volume.ts';

type Staged = ObservedVolume & { readonly stage: ObservedStage };

export const planElsewhere = (volume: Volume, observed: Staged, context: PlanContext): Plan => {
  const { stage } = observed;
  if (stage.volume !== undefined) {
    return stage.claim === undefined
      ? planArrival(volume, stage.volume, context)
      : { actions: leave(stage), state: stateOf(volume, volume.state, 'HandingOver', context) };
  }
  if (stage.claim === undefined) return planStage(volume, observed, context);
  if (stage.claim.metadata.deletionTimestamp !== undefined) {
    // The pod would keep the claim, and the claim would keep the pod pending.
    return { actions: removeJob(stage.job), state: stateOf(volume, volume.state, 'ChildDeleted', context) };
  }
  return planStaged(volume, { ...observed, stage: { ...stage, claim: stage.claim } }, context);
};

const messages = {
  HandingOver: 'the copy is complete beside its source, and is being handed over',
  ChildDeleted: 'what was created for it beside its source is being deleted; starting again once it is gone',
} as const;

const stateOf = (volume: Volume, state: ImageState, reason: keyof typeof messages, context: PlanContext): ImageState =>
  waitingState(volume, state, { phase: 'Cloning', reason, message: messages[reason] }, context);

/** The volume in the namespace of the source. Names and accounts of its own namespace are not valid there. */
const toStage = (volume: Volume): Volume => {
  const { labels: _labels, annotations: _annotations, filled: _filled, adopts: _adopts, ...asked } = volume.claim;
  const claim = { ...asked, name: cloneName(volume) };
  return { ...volume, claim, pod: undefined, waitsForConsumer: false };
};

/** A WaitForFirstConsumer class needs a pod, and the only one is that of a Job. */
export const stageObstacleOf = ({ storageClass }: Pick<ObservedVolume, 'storageClass'>): string | undefined =>
  storageClass?.volumeBindingMode === 'WaitForFirstConsumer'
    ? `class ${storageClass.metadata.name} waits for a pod, and the source lies in another namespace`
    : undefined;

const planStage = (volume: Volume, observed: Staged, context: PlanContext): Plan => {
  const { origin, storageClass, stage } = observed;
  if (origin === undefined || origin.is === 'waiting') return rest(volume, origin ?? nothingThere);
  if (storageClass === undefined) return noClass(volume, origin.className, context);
  const { profile, inspectJob, pods } = observed;
  const there = { pods, inspectJob, origin, storageClass, profile, sourceSnapshot: stage.sourceSnapshot };
  return moved(
    volume,
    stage,
    planClone(toStage(volume), there, context, { obstacle: stageObstacleOf(observed) }),
    context,
  );
};

const nothingThere = { reason: 'SourceNotFound', message: 'the source is gone' } as const;

type Filling = Staged & { readonly stage: ObservedStage & { readonly claim: PersistentVolumeClaim } };

const planStaged = (volume: Volume, { stage, storageClass }: Filling, context: PlanContext): Plan => {
  const { claim, bound } = stage;
  if (populationOf(claim) !== undefined && bound !== undefined) {
    const record = recordOf(claim) ?? { strategy: 'copy', because: 'unknown' };
    const go = planDeparture(volume, { claim, bound, record: { ...record, population: populationOf(claim) } });
    return { actions: [go, ...leave(stage)], state: stateOf(volume, volume.state, 'HandingOver', context) };
  }
  const { job, pods, sourceSnapshot, restored } = stage;
  const plan = planFilling(toStage(volume), { claim, job, pods, sourceSnapshot, restored, storageClass }, context);
  return moved(volume, stage, plan, context);
};

/** A crash may have happened between marking the copy and removing its snapshot: the claim, by which all of it is found, goes last. */
const leave = ({ claim, job, restored, sourceSnapshot }: ObservedStage): readonly Action[] => [
  ...removeJob(job),
  ...remove(volumeSnapshots, sourceSnapshot),
  ...remove(persistentVolumeClaims, restored),
  ...remove(persistentVolumeClaims, claim),
];

/** The plan of the stage, while the volume itself is not usable before it was handed over. */
const moved = (volume: Volume, { namespace }: ObservedStage, { actions, state }: Plan, context: PlanContext): Plan => {
  const children = state.children?.volume === undefined ? {} : { volume: volume.claim.name };
  const staged = { ...state, children: { ...state.children, ...children, snapshot: undefined } };
  return {
    actions: actions.map((action) =>
      action.do === 'create' ? { ...action, object: movedTo(action.object, namespace) } : action,
    ),
    state:
      state.phase === 'Available'
        ? stateOf(volume, { ...volume.state, clone: state.clone, children: staged.children }, 'HandingOver', context)
        : staged,
  };
};

/**
 * Deleted during the copy: the children in the other namespace are removed, and a persistent volume that is being handed over is left to be
 * reclaimed.
 */
export const removeOrphans = ({ ref }: Volume, orphans: Orphans): readonly Action[] => [
  ...orphans.volumes.map((volume) => releaseAction(volume, ref.uid)),
  ...orphans.jobs.flatMap((job) => removeJob(job)),
  ...orphans.claims.flatMap((claim) => remove(persistentVolumeClaims, claim)),
  ...orphans.snapshots.flatMap((snapshot) => remove(volumeSnapshots, snapshot)),
];

/** Children that a failed try left in the other namespace. */
export const leftThere = (stage: ObservedStage | undefined): readonly Action[] =>
  stage === undefined || stage.volume !== undefined ? [] : leave(stage);
