// The csi backend's decisions: find the size, make the volume, fill it, snapshot it. Pure; each file of this folder decides one stretch.
import { type Image, type ImageState, isRetryDue } from '#shared/backends/image.ts';
import { volumeSnapshots } from '#shared/api/foreign/snapshot.ts';
import { remove, removeJob } from '#shared/backends/actions.ts';
import type { Plan, PlanContext } from '#shared/backends/backend.ts';
import { countAttempts, failedState, retryHint, takenState, unchanged } from '#shared/backends/state.ts';
import { planFilling } from '#shared/backends/csi/filling.ts';
import { planRestart } from '#shared/backends/csi/removal.ts';
import type { CsiSeen } from '#shared/backends/csi/seen.ts';
import { planSnapshot, snapshotState } from '#shared/backends/csi/snapshotting.ts';
import { releaseSpool } from '#shared/backends/spooling.ts';
import { planVolume } from '#shared/backends/csi/sizing.ts';
import { readTransfer } from '#shared/populate/attempts.ts';
import { inClass } from '#shared/populate/class-annotations.ts';
import { populationOf } from '#shared/populate/volume.ts';

export const initialize = (image: Image, seen: CsiSeen, given: PlanContext): Plan => {
  const context = inClass(given, seen.storageClass);
  if (image.state.phase !== 'Available' && isRetryDue(image)) {
    const restart = planRestart(image, seen, context);
    return restart.cleared === undefined ? restart.plan : advance(restart.cleared, seen, context);
  }
  return image.state.phase === 'Failed' ? unchanged(image) : advance(image, seen, context);
};

const advance = (image: Image, seen: CsiSeen, context: PlanContext): Plan => {
  const [taken] = seen.foreign;
  if (taken !== undefined) return { actions: [], state: takenState(image, taken, context) };
  if (seen.completed !== undefined)
    return { actions: [], state: snapshotState(image, image.state, seen.completed, context) };
  const population = populationOf(seen.volume);
  if (seen.volume !== undefined && population !== undefined && isUsable(seen.volume)) {
    const state = countAttemptsOf(image, seen, context);
    const plan = planSnapshot({ ...image, state }, { ...seen, volume: seen.volume }, population, context);
    // A crash may have come between marking the volume and taking away what it was copied through.
    const left = [...remove(volumeSnapshots, seen.sourceSnapshot), ...releaseSpool(image, seen.importJob)];
    return { ...plan, actions: [...left, ...plan.actions] };
  }
  const wasFilled = image.state.phase === 'Available' || image.state.phase === 'Snapshotting';
  if (wasFilled || seen.volume?.status?.phase === 'Lost') return planLost(image, seen);
  return seen.volume === undefined
    ? planVolume(image, seen, context)
    : planFilling(image, { ...seen, volume: seen.volume }, context);
};

/** A crash may have come between marking the volume and writing down how it was filled. */
const countAttemptsOf = (image: Image, { importJob, pods }: CsiSeen, { now }: PlanContext): ImageState =>
  importJob === undefined ? image.state : countAttempts(image.state, readTransfer(importJob, pods, now));

const isUsable = (volume: NonNullable<CsiSeen['volume']>): boolean =>
  volume.metadata.deletionTimestamp === undefined && volume.status?.phase !== 'Lost';

/** A pod that has ended holds a volume on its way out as one that runs does. */
const planLost = (image: Image, { volume, importJob }: CsiSeen): Plan => ({
  actions: volume === undefined ? [] : removeJob(importJob),
  state: failedState(
    image.state,
    'VolumeLost',
    `the golden volume ${image.childNames.volume} is gone or lost its data; ${retryHint}`,
  ),
});
