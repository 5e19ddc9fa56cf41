// The csi backend's decisions: find the size, make the volume, fill it, snapshot it. Pure; each file of this folder decides one stretch.
import { type ImageState, isRetryDue } from '#shared/populate/filled.ts';
import { volumeSnapshots } from '#shared/api/foreign/snapshot.ts';
import { remove, removeJob, type Action, type Plan, type PlanContext } from '#shared/populate/actions.ts';
import {
  countAttempts,
  takenState,
  unchanged,
  describeChild,
  restartedState,
  restartingState,
  terminatingState,
} from '#shared/populate/state.ts';
import { planFilling } from '#shared/backends/csi/filling.ts';
import type { ObservedCsi } from '#shared/backends/csi/observed.ts';
import { planSnapshot, snapshotState } from '#shared/backends/csi/snapshotting.ts';
import { releaseSpool } from '#shared/populate/job/spooling.ts';
import { planVolume } from '#shared/backends/csi/sizing.ts';
import { lostState } from '#shared/populate/loss.ts';
import { readTransfer } from '#shared/populate/job/attempts.ts';
import { inClass } from '#shared/populate/storage/class-annotations.ts';
import { populationOf } from '#shared/populate/population.ts';
import { type PersistentVolumeClaim, persistentVolumeClaims } from '#shared/api/foreign/core.ts';
import type { KubeObject } from '#shared/api/object.ts';
import type { Image } from '#shared/backends/image.ts';

export const initialize = (image: Image, observed: ObservedCsi, given: PlanContext): Plan => {
  const context = inClass(given, observed.storageClass);
  if (image.state.phase !== 'Available' && isRetryDue(image)) {
    const restart = planRestart(image, observed, context);
    return restart.cleared === undefined ? restart.plan : advance(restart.cleared, observed, context);
  }
  return image.state.phase === 'Failed' ? unchanged(image) : advance(image, observed, context);
};

const advance = (image: Image, observed: ObservedCsi, context: PlanContext): Plan => {
  const [taken] = observed.foreign;
  if (taken !== undefined) return { actions: [], state: takenState(image, taken, context) };
  if (observed.completed !== undefined)
    return { actions: [], state: snapshotState(image, image.state, observed.completed, context) };
  const population = populationOf(observed.volume);
  if (observed.volume !== undefined && population !== undefined && isUsable(observed.volume)) {
    const state = countAttemptsOf(image, observed, context);
    const plan = planSnapshot({ ...image, state }, { ...observed, volume: observed.volume }, population, context);
    // A crash may have come between marking the volume and taking away what it was copied through.
    const left = [...remove(volumeSnapshots, observed.sourceSnapshot), ...releaseSpool(image, observed.importJob)];
    return { ...plan, actions: [...left, ...plan.actions] };
  }
  const wasFilled = image.state.phase === 'Available' || image.state.phase === 'Snapshotting';
  if (wasFilled || observed.volume?.status?.phase === 'Lost') return planLost(image, observed);
  return observed.volume === undefined
    ? planVolume(image, observed, context)
    : planFilling(image, { ...observed, volume: observed.volume }, context);
};

/** A crash may have come between marking the volume and writing down how it was filled. */
const countAttemptsOf = (image: Image, { importJob, pods }: ObservedCsi, { now }: PlanContext): ImageState =>
  importJob === undefined ? image.state : countAttempts(image.state, readTransfer(importJob, pods, now));

const isUsable = (volume: NonNullable<ObservedCsi['volume']>): boolean =>
  volume.metadata.deletionTimestamp === undefined && volume.status?.phase !== 'Lost';

/** A pod that has ended holds a volume on its way out as one that runs does. */
const planLost = (image: Image, { volume, importJob }: ObservedCsi): Plan => ({
  actions: volume === undefined ? [] : removeJob(importJob),
  state: lostState(image, `the golden volume ${image.childNames.volume}`, image.source),
});

// Taking away what an image made: all of it when the image is deleted, what is not worth keeping when the user starts it over.

/** The next step of removal. Pods count too: the name is free only when nothing writes any more. */
export const planDelete = (image: Image, observed: ObservedCsi): Plan & { readonly removed: boolean } => {
  const left = observedChildren(observed);
  const message = left.length === 0 ? 'removed' : `waiting for ${left.map(describeChild).join(', ')} to go`;
  const state = terminatingState(image.state, 'Terminating', message);
  return { actions: removeAll(observed), state, removed: left.length === 0 };
};

const observedChildren = (observed: ObservedCsi): readonly KubeObject[] =>
  [
    observed.inspectJob,
    observed.importJob,
    ...(observed.readers ?? []),
    ...observed.pods,
    observed.snapshot,
    observed.sourceSnapshot,
    observed.volume,
    observed.spool,
  ].filter((child) => child !== undefined);

const removeAll = (observed: ObservedCsi): readonly Action[] => [
  ...removeJob(observed.inspectJob),
  ...removeJob(observed.importJob),
  ...(observed.readers ?? []).flatMap(removeJob),
  ...remove(volumeSnapshots, observed.snapshot),
  ...remove(volumeSnapshots, observed.sourceSnapshot),
  ...remove(persistentVolumeClaims, observed.volume),
  ...remove(persistentVolumeClaims, observed.spool),
];

interface Restart {
  readonly plan: Plan;
  /** The image as new, once nothing is in the way any more. */
  readonly cleared?: Image;
}

/**
 * A retry throws away Jobs, a volume that is not filled, and a snapshot that failed. A volume that is filled and verified is kept: its bytes
 * are never fetched twice.
 */
const planRestart = (image: Image, observed: ObservedCsi, context: PlanContext): Restart => {
  const dirty = dirtyPart(observed);
  const left = observedChildren(dirty);
  if (left.length > 0) return { plan: { actions: removeAll(dirty), state: restartingState(image, left, context) } };
  const state = restartedState(image);
  return { plan: { actions: [], state }, cleared: { ...image, state } };
};

/** The Jobs of a kept volume stay with it: while their names are taken, no stale pass can start to fill it again. */
const dirtyPart = (observed: ObservedCsi): ObservedCsi => {
  if (!isWorthKeeping(observed.volume)) return observed;
  const isSnapshotBroken = observed.snapshot?.status?.error !== undefined;
  return { pods: [], foreign: observed.foreign, snapshot: isSnapshotBroken ? observed.snapshot : undefined };
};

const isWorthKeeping = (volume: PersistentVolumeClaim | undefined): boolean =>
  populationOf(volume) !== undefined &&
  volume?.metadata.deletionTimestamp === undefined &&
  volume?.status?.phase !== 'Lost';
