// The decisions about a volume: make its claim, see it filled by the storage or by a Job, mark it, start over. Pure.
import { type PersistentVolumeClaim, persistentVolumeClaims } from '#shared/api/foreign/core.ts';
import { volumeSnapshots } from '#shared/api/foreign/snapshot.ts';
import type { KubeObject } from '#shared/api/object.ts';
import { childMetadata } from '#shared/api/owner.ts';
import { patch, remove, removeJob, type Plan, type PlanContext } from '#shared/populate/actions.ts';
import { lostState } from '#shared/populate/loss.ts';
import { type ImageState, isRetryDue } from '#shared/populate/filled.ts';
import {
  countAttempts,
  restartedState,
  restartingState,
  takenState,
  unchanged,
  waitingState,
} from '#shared/populate/state.ts';
import { readTransfer } from '#shared/populate/job/attempts.ts';
import { inClass } from '#shared/populate/storage/class-annotations.ts';
import { type Population, populationOf } from '#shared/populate/population.ts';
import { planAdopted } from '#shared/populate/volume/binding.ts';
import { planClaim } from '#shared/populate/volume/claim.ts';
import { leftThere } from '#shared/populate/volume/elsewhere.ts';
import { planFilling, releaseSource } from '#shared/populate/volume/filling.ts';
import { isPromiseOpen, planBinding, planPromised } from '#shared/populate/volume/binding.ts';
import type { ObservedVolume } from '#shared/populate/volume/observed.ts';
import { rest, usableState } from '#shared/populate/volume/state.ts';
import type { Volume } from '#shared/populate/volume/volume.ts';

export const planVolume = (volume: Volume, observed: ObservedVolume, given: PlanContext): Plan => {
  const context = inClass(given, observed.storageClass);
  if (volume.state.phase !== 'Available' && isRetryDue(volume)) return planRestart(volume, observed, context);
  return volume.state.phase === 'Failed' ? unchanged(volume) : advance(volume, observed, context);
};

const advance = (volume: Volume, observed: ObservedVolume, context: PlanContext): Plan => {
  const { claim, foreign } = observed;
  if (foreign !== undefined) return planForeign(volume, foreign, context);
  if (claim === undefined) return planUnmade(volume, observed, context);
  if (claim.status?.phase === 'Lost') return planLost(volume);
  if (claim.metadata.deletionTimestamp !== undefined) return planLeaving(volume, observed, context);
  const population = populationOf(claim) ?? populationKnown(volume);
  if (population !== undefined && isPromiseOpen(claim)) return planBinding(volume, claim, context);
  return population === undefined
    ? planFilling(volume, { ...observed, claim }, context)
    : planUsable({ ...volume, state: countedState(volume, observed, context) }, { ...observed, claim }, population);
};

const planUnmade = (volume: Volume, observed: ObservedVolume, context: PlanContext): Plan => {
  if (volume.state.phase === 'Available' || volume.claim.fills !== undefined) return planLost(volume);
  if (observed.promised !== undefined) return planPromised(volume, observed.promised, context);
  if (volume.claim.comesFilled !== true) return planClaim(volume, observed, context);
  const message = `claim ${volume.claim.name} is to be brought with its data, by a restore or by hand; none is made here`;
  return rest(volume, { reason: 'ClaimNotFound', message });
};

/** A crash may have come between marking the claim and writing down how it was filled. */
const countedState = ({ state }: Volume, { job, pods }: ObservedVolume, { now }: PlanContext): ImageState =>
  job === undefined || pods.length === 0 || state.phase === 'Available'
    ? state
    : countAttempts(state, readTransfer(job, pods, now));

/** What was usable once is never filled again, whatever became of the mark. */
const populationKnown = ({ state }: Volume): Population | undefined =>
  state.phase === 'Available'
    ? { inspection: state.inspection ?? { format: 'raw', compression: 'none' }, digests: { ...state.digests } }
    : undefined;

const planForeign = (volume: Volume, claim: PersistentVolumeClaim, context: PlanContext): Plan => {
  if (volume.claim.fills?.(claim) === true) return planMarked(volume, claim, context);
  if (volume.claim.adopts?.(claim) !== true) return { actions: [], state: takenState(volume, claim, context) };
  if (claim.status?.phase === 'Lost') return planLost(volume);
  return claim.metadata.deletionTimestamp === undefined
    ? planAdopted(volume, claim)
    : planLeaving(volume, { pods: [], claim }, context);
};

/** From now on it is found as that of the volume, and still goes with nobody but whoever made it. */
const planMarked = (volume: Volume, claim: PersistentVolumeClaim, context: PlanContext): Plan => {
  const { labels, annotations } = childMetadata(volume.ref, 'disk', claim.metadata.name);
  const message = `claim ${claim.metadata.name} is to be filled`;
  return {
    actions: [patch(persistentVolumeClaims, claim, { metadata: { labels, annotations } })],
    state: waitingState(volume, volume.state, { phase: 'Pending', reason: 'Starting', message }, context),
  };
};

const planLost = (volume: Volume): Plan => {
  const source = volume.source?.type === 'transfer' ? volume.source.from : undefined;
  return { actions: [], state: lostState(volume, `the claim ${volume.claim.name}`, source) };
};

const isUsable = ({ metadata, status }: PersistentVolumeClaim): boolean =>
  metadata.deletionTimestamp === undefined && status?.phase !== 'Lost';

/** A pod that waits for a claim on its way out is what keeps it: neither would ever come to an end. */
const planLeaving = (volume: Volume, { claim, job }: ObservedVolume, context: PlanContext): Plan => {
  const message = `PersistentVolumeClaim ${claim?.metadata.name} is being deleted; starting again once it is gone`;
  const step = { phase: 'Pending', reason: 'ChildDeleted', message } as const;
  return { actions: removeJob(job), state: waitingState(volume, volume.state, step, context) };
};

/** A snapshot that was taken for this clone alone has done its work. */
const planUsable = (
  volume: Volume,
  { claim, job, pods, sourceSnapshot }: ObservedVolume & { readonly claim: PersistentVolumeClaim },
  population: Population,
): Plan => ({
  actions: [...remove(volumeSnapshots, sourceSnapshot), ...releaseSource(volume, claim, { job, pods })],
  state: usableState(volume, claim, population),
});

const dirtyOf = (
  volume: Volume,
  { job, inspectJob, claim, spool, sourceSnapshot, restored, pods, stage }: ObservedVolume,
): readonly KubeObject[] => {
  const own = volume.claim.fills === undefined ? claim : undefined;
  const there =
    stage?.volume === undefined
      ? [stage?.claim, stage?.job, stage?.sourceSnapshot, stage?.restored, ...(stage?.pods ?? [])]
      : [];
  return [job, inspectJob, own, spool, sourceSnapshot, restored, ...pods, ...there].filter(
    (child) => child !== undefined,
  );
};

/** What is not filled is thrown away; a volume that is filled stays. */
const planRestart = (volume: Volume, observed: ObservedVolume, context: PlanContext): Plan => {
  const isWorthKeeping =
    populationOf(observed.claim) !== undefined && observed.claim !== undefined && isUsable(observed.claim);
  const dirty = isWorthKeeping ? [] : dirtyOf(volume, observed);
  if (dirty.length > 0) {
    const actions = [
      ...removeJob(observed.job),
      ...removeJob(observed.inspectJob),
      ...(volume.claim.fills === undefined ? remove(persistentVolumeClaims, observed.claim) : []),
      ...remove(persistentVolumeClaims, observed.spool),
      ...remove(persistentVolumeClaims, observed.restored),
      ...remove(volumeSnapshots, observed.sourceSnapshot),
      ...leftThere(observed.stage),
    ];
    return { actions, state: restartingState(volume, dirty, context) };
  }
  return advance({ ...volume, state: restartedState(volume) }, observed, context);
};
