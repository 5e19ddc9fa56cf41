// Taking away what an image made: all of it when the image is deleted, what is not worth keeping when the user starts it over.
import { type PersistentVolumeClaim, persistentVolumeClaims } from '#shared/api/foreign/core.ts';
import { volumeSnapshots } from '#shared/api/foreign/snapshot.ts';
import type { KubeObject } from '#shared/api/object.ts';
import { type Action, remove, removeJob } from '#shared/backends/actions.ts';
import type { Plan, PlanContext } from '#shared/backends/backend.ts';
import type { Image } from '#shared/backends/image.ts';
import { describeChild, restartedState, restartingState, terminatingState } from '#shared/backends/state.ts';
import type { ObservedCsi } from '#shared/backends/csi/observed.ts';
import { populationOf } from '#shared/populate/volume.ts';

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

export interface Restart {
  readonly plan: Plan;
  /** The image as new, once nothing is in the way any more. */
  readonly cleared?: Image;
}

/**
 * A retry throws away Jobs, a volume that is not filled, and a snapshot that failed. A volume that is filled and verified is kept: its bytes
 * are never fetched twice.
 */
export const planRestart = (image: Image, observed: ObservedCsi, context: PlanContext): Restart => {
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
