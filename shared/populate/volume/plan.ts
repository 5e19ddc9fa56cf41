// Plans a volume: create its claim, let the storage or a Job fill it, mark it, restart. Pure.
import { type PersistentVolumeClaim, persistentVolumeClaims } from '#shared/api/foreign/core.ts';
import { volumeSnapshots } from '#shared/api/foreign/snapshot.ts';
import { childMetadata } from '#shared/api/object.ts';
import { type Plan, type PlanContext, patch, remove, removeJob } from '#shared/populate/actions.ts';
import { type ImageState, isRetryDue } from '#shared/populate/filled.ts';
import { isFinished, readTransfer } from '#shared/populate/job/attempts.ts';
import { lostState } from '#shared/populate/loss.ts';
import { type Population, populationOf } from '#shared/populate/population.ts';
import {
  countAttempts,
  restartedState,
  takenState,
  unchanged,
  waitingState,
  leavingState,
} from '#shared/populate/state.ts';
import { inClass } from '#shared/populate/storage/profile.ts';
import { planAdopted } from '#shared/populate/volume/adopting.ts';
import { isPromiseOpen, planBinding, planPromised } from '#shared/populate/volume/binding.ts';
import { planClaim } from '#shared/populate/volume/claim.ts';
import { planFilling, releaseSource } from '#shared/populate/volume/filling.ts';
import type { ObservedVolume } from '#shared/populate/volume/observed.ts';
import { planRestart } from '#shared/populate/volume/removal.ts';
import { planFilled, snapshotState } from '#shared/populate/volume/snapshotting.ts';
import { isLeft, isWhole, rest, wasFilled } from '#shared/populate/volume/state.ts';
import type { Volume } from '#shared/populate/volume/volume.ts';

export const planVolume = (volume: Volume, observed: ObservedVolume, given: PlanContext): Plan => {
  const context = inClass(given, observed.storageClass);
  if (volume.state.phase !== 'Available' && isRetryDue(volume))
    return (
      planRestart(volume, observed, context) ?? advance({ ...volume, state: restartedState(volume) }, observed, context)
    );
  return volume.state.phase === 'Failed' ? clear(volume, observed) : advance(volume, observed, context);
};

/**
 * A concurrent reconciliation that read the object before it failed may have created again what the failure removed. Its status write conflicts, so
 * it comes here next and removes that: nothing reconciles a failed object later.
 */
const clear = (volume: Volume, { job, spool }: ObservedVolume): Plan => ({
  ...unchanged(volume),
  actions: [...(job === undefined || isFinished(job) ? [] : removeJob(job)), ...remove(persistentVolumeClaims, spool)],
});

const advance = (volume: Volume, observed: ObservedVolume, context: PlanContext): Plan => {
  const { claim, foreign, taken, completed } = observed;
  if (completed !== undefined) return { actions: [], state: snapshotState(volume, volume.state, completed, context) };
  if (taken !== undefined) return { actions: [], state: takenState(volume, taken, context) };
  if (foreign !== undefined) return planForeign(volume, { ...observed, claim: foreign }, context);
  return claim === undefined
    ? planUnmade(volume, observed, context)
    : planMade(volume, { ...observed, claim }, context);
};

type Made = ObservedVolume & { readonly claim: PersistentVolumeClaim };

const planMade = (volume: Volume, observed: Made, context: PlanContext): Plan => {
  const { claim } = observed;
  if (claim.status?.phase === 'Lost' || (wasFilled(volume) && !isWhole(claim))) return planLost(volume, observed);
  if (claim.metadata.deletionTimestamp !== undefined) return planLeaving(volume, observed, context);
  const population = populationOf(claim) ?? populationKnown(volume);
  if (population !== undefined && isPromiseOpen(claim)) return planBinding(volume, claim, context);
  return population === undefined
    ? planFilling(volume, observed, context)
    : planMarkedAsFilled(volume, observed, population, context);
};

const planUnmade = (volume: Volume, observed: ObservedVolume, context: PlanContext): Plan => {
  if (wasFilled(volume) || volume.claim.fills !== undefined) return planLost(volume, observed);
  if (observed.job !== undefined) return planRefill(volume, observed, context);
  if (observed.promised !== undefined) return planPromised(volume, observed.promised, context);
  if (volume.claim.comesFilled !== true) return planClaim(volume, observed, context);
  const message = `claim ${volume.claim.name} is to be restored with its data, by a backup tool or by hand; none is created here`;
  return rest(volume, { reason: 'ClaimNotFound', message });
};

/** The claim was deleted under its Job: the data is lost, so both start again. */
const planRefill = (volume: Volume, { job }: ObservedVolume, context: PlanContext): Plan => {
  const message = 'the volume was removed while it was being filled; starting again';
  const next = { ...volume.state, attempts: 0, attemptsFailed: 0, transfer: undefined, progress: 0 };
  const step = { phase: 'Pending', reason: 'VolumeMissing', message } as const;
  return { actions: removeJob(job), state: waitingState(volume, next, step, context) };
};

/** A crash may have happened between marking the claim and recording how it was filled. */
const countedState = ({ state }: Volume, { job, pods }: ObservedVolume, { now }: PlanContext): ImageState =>
  job === undefined || pods.length === 0 || state.phase === 'Available'
    ? state
    : countAttempts(state, readTransfer(job, pods, now));

/** A volume that was filled once is never filled again, whatever happened to the mark. */
const populationKnown = (volume: Volume): Population | undefined => {
  const { inspection, digests, servedFrom } = volume.state;
  return wasFilled(volume)
    ? { inspection: inspection ?? { format: 'raw', compression: 'none' }, digests: { ...digests }, servedFrom }
    : undefined;
};

const planForeign = (volume: Volume, { claim, snapshot }: Made, context: PlanContext): Plan => {
  if (volume.claim.fills?.(claim) === true) return planMarked(volume, claim, context);
  if (!isLeft(volume, claim) && volume.claim.adopts?.(claim) !== true)
    return { actions: [], state: takenState(volume, claim, context) };
  if (claim.status?.phase === 'Lost') return planLost(volume, { pods: [] });
  return claim.metadata.deletionTimestamp === undefined
    ? planAdopted(volume, claim, snapshot)
    : planLeaving(volume, { pods: [], claim }, context);
};

/** From now on it is labelled as the claim of the volume, while its owner stays the client that created it. */
const planMarked = (volume: Volume, claim: PersistentVolumeClaim, context: PlanContext): Plan => {
  const { labels, annotations } = childMetadata(volume.ref, 'disk', claim.metadata.name);
  const message = `claim ${claim.metadata.name} is to be filled`;
  return {
    actions: [patch(persistentVolumeClaims, claim, { metadata: { labels, annotations } })],
    state: waitingState(volume, volume.state, { phase: 'Pending', reason: 'Starting', message }, context),
  };
};

/** A pod keeps a terminating claim even after the pod has ended. */
const planLost = (volume: Volume, { claim, job }: ObservedVolume): Plan => {
  const { source, claim: asked } = volume;
  const what = asked.role === 'volume' ? `the golden volume ${asked.name}` : `the claim ${asked.name}`;
  return {
    actions: claim === undefined ? [] : removeJob(job),
    state: lostState(volume, what, source?.type === 'transfer' ? source.from : undefined),
  };
};

/** A pending pod keeps its terminating claim: neither would ever end. */
const planLeaving = (volume: Volume, { claim, job }: Made, context: PlanContext): Plan => ({
  actions: removeJob(job),
  state: leavingState(volume, claim, context),
});

/** A crash may have happened between marking the claim and removing the objects it was filled through. */
const planMarkedAsFilled = (volume: Volume, observed: Made, population: Population, context: PlanContext): Plan => {
  const { claim, sourceSnapshot } = observed;
  const state = countedState(volume, observed, context);
  const next = planFilled({ ...volume, state }, observed, population, context);
  const left = [...remove(volumeSnapshots, sourceSnapshot), ...releaseSource(volume, claim, observed)];
  return { ...next, actions: [...left, ...next.actions] };
};
