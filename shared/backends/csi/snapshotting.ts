// A filled volume: snapshot it where its driver can, and say that the image is usable.
import { type PersistentVolumeClaim } from '#shared/api/foreign/core.ts';
import { type VolumeSnapshot, volumeSnapshots } from '#shared/api/foreign/snapshot.ts';
import { create, type Plan, type PlanContext } from '#shared/populate/actions.ts';
import type { ImageState } from '#shared/populate/filled.ts';
import { failedState, retryHint, storageWaitingState, usableState } from '#shared/populate/state.ts';
import type { ObservedCsi } from '#shared/backends/csi/observed.ts';
import {
  type SnapshotClassChoice,
  buildSnapshot,
  chooseSnapshotClass,
  contentMarkOf,
  describeContent,
} from '#shared/populate/storage/snapshot.ts';
import { type Population, provisionerOf } from '#shared/populate/population.ts';
import type { Image } from '#shared/backends/image.ts';

type Filled = ObservedCsi & { readonly volume: PersistentVolumeClaim };

export const planSnapshot = (image: Image, observed: Filled, population: Population, context: PlanContext): Plan => {
  const state = filledState(image, observed.volume, population);
  if (observed.snapshot !== undefined) return wait(image, state, observed.snapshot, context);
  // A usable image that never had a snapshot is not taken out of use because a snapshot class has appeared since.
  const isUsableWithout = image.state.phase === 'Available' && image.state.children?.snapshot === undefined;
  if (isUsableWithout) return { actions: [], state: usableState(image, state) };
  const choice = choiceOf(image, observed);
  switch (choice?.is) {
    case undefined:
      return wait(image, state, undefined, context);
    case 'none': {
      const children = { ...state.children, snapshot: undefined };
      return { actions: [], state: usableState(image, { ...state, children }) };
    }
    case 'wrong':
      return { actions: [], state: failedState(state, 'SnapshotClassInvalid', `${choice.message}; ${retryHint}`) };
    case 'found': {
      const { snapshot: name } = image.childNames;
      const snapshot = describeContent(
        buildSnapshot(image.ref, name, observed.volume.metadata.name, choice.name),
        contentMarkOf(observed.volume),
        population,
      );
      return { ...wait(image, state, snapshot, context), actions: [create(volumeSnapshots, snapshot)] };
    }
  }
};

const wait = (image: Image, state: ImageState, snapshot: VolumeSnapshot | undefined, context: PlanContext): Plan => ({
  actions: [],
  state: snapshotState(image, state, snapshot, context),
});

/** `undefined`: nobody was asked. The user's word counts first, then that of the class's StorageProfile. */
const choiceOf = ({ storage }: Image, observed: Filled): SnapshotClassChoice | undefined => {
  const { snapshotClasses, snapshotClass } = observed;
  if (snapshotClasses !== undefined)
    return chooseSnapshotClass(snapshotClasses, driverOf(observed), storage.snapshotClassName ?? snapshotClass);
  return snapshotClass === undefined ? undefined : { is: 'found', name: snapshotClass };
};

/** Who made the volume, from the volume itself where Kubernetes noted it: its class may be gone by now. */
const driverOf = ({ volume, storageClass }: Filled): string | undefined =>
  provisionerOf(volume) ?? storageClass?.provisioner;

/** What the filled volume says of itself. */
export const filledState = (image: Image, volume: PersistentVolumeClaim, population: Population): ImageState => ({
  ...image.state,
  inspection: population.inspection,
  digests: population.digests,
  lastFailure: undefined,
  storageClassName: image.state.storageClassName ?? volume.spec.storageClassName,
  children: { ...image.state.children, volume: volume.metadata.name },
});

export const snapshotState = (
  image: Image,
  before: ImageState,
  snapshot: VolumeSnapshot | undefined,
  context: PlanContext,
): ImageState => {
  const name = image.childNames.snapshot;
  const state = { ...before, progress: 99, transfer: undefined, children: { ...before.children, snapshot: name } };
  const isLeaving = snapshot?.metadata.deletionTimestamp !== undefined;
  if (snapshot?.status?.readyToUse === true && !isLeaving) return usableState(image, state);
  const error = snapshot?.status?.error?.message;
  const step =
    error === undefined
      ? { reason: 'Snapshotting', message: `waiting for VolumeSnapshot ${name} to become ready` }
      : { reason: 'SnapshotFailed', message: `VolumeSnapshot ${name} is in error: ${error}` };
  const wait = { ...step, phase: 'Snapshotting', child: snapshot, isComplaining: error !== undefined } as const;
  return storageWaitingState(image, state, wait, context);
};
