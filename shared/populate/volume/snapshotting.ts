// A filled volume: a snapshot is taken of it if requested and supported by its driver; then it is usable. Reads and decides.
import { annotations } from '#shared/api/names.ts';
import type { KubeClient } from '#shared/clients/kube/client.ts';
import { readClass, readOwn, readSnapshotClasses, readNamedSnapshotClass } from '#shared/populate/reading.ts';
import type { PersistentVolumeClaim } from '#shared/api/foreign/core.ts';
import { isLeftBy } from '#shared/api/object.ts';
import { type VolumeSnapshot, volumeSnapshots } from '#shared/api/foreign/snapshot.ts';
import { type Plan, type PlanContext, create } from '#shared/populate/actions.ts';
import type { ImageState } from '#shared/populate/filled.ts';
import { type Population, provisionerOf } from '#shared/populate/population.ts';
import { failedState, retryHint, storageWaitingState, usableState } from '#shared/populate/state.ts';
import {
  type SnapshotClassChoice,
  buildSnapshot,
  chooseSnapshotClass,
  contentMarkOf,
  describeContent,
} from '#shared/populate/storage/snapshot.ts';
import { type ObservedVolume, mayBe } from '#shared/populate/volume/observed.ts';
import { filledState } from '#shared/populate/volume/state.ts';
import type { SnapshotRequest, Volume } from '#shared/populate/volume/volume.ts';

type WithClaim = ObservedVolume & { readonly claim: PersistentVolumeClaim };

/** The remaining work for a volume whose bytes are complete. */
export const planFilled = (volume: Volume, observed: WithClaim, population: Population, context: PlanContext): Plan => {
  const state = filledState(volume, observed.claim, population);
  if (volume.snapshot === undefined) return usable(volume, state);
  if (observed.snapshot !== undefined)
    return { actions: [], state: snapshotState(volume, state, observed.snapshot, context) };
  // A volume that is usable without a snapshot stays usable when a snapshot class appears later.
  const isUsableWithout = volume.state.phase === 'Available' && volume.state.children?.snapshot === undefined;
  return isUsableWithout
    ? usable(volume, state)
    : planSnapshot({ ...volume, state, snapshot: volume.snapshot }, observed, population, context);
};

const usable = (volume: Volume, { children, ...state }: ImageState): Plan => ({
  actions: [],
  state: usableState(
    volume,
    { ...state, children: { ...children, snapshot: undefined } },
    volume.claim.role === 'volume' ? 'image' : 'volume',
  ),
});

type Snapshotted = Volume & { readonly snapshot: SnapshotRequest };

const planSnapshot = (volume: Snapshotted, observed: WithClaim, population: Population, context: PlanContext): Plan => {
  const { state, snapshot: request } = volume;
  const choice = choiceOf(request, observed);
  switch (choice?.is) {
    case undefined:
      return { actions: [], state: snapshotState(volume, state, undefined, context) };
    case 'none':
      return usable(volume, state);
    case 'wrong':
      return { actions: [], state: failedState(state, 'SnapshotClassInvalid', `${choice.message}; ${retryHint}`) };
    case 'found': {
      const { name } = observed.claim.metadata;
      const built = buildSnapshot(volume.ref, request.name, name, choice.name);
      const snapshot = describeContent(built, contentMarkOf(observed.claim), population);
      return {
        actions: [create(volumeSnapshots, snapshot)],
        state: snapshotState(volume, state, snapshot, context),
      };
    }
  }
};

/** `undefined`: the classes were not read. The request of the user takes precedence, then the StorageProfile of the class. */
const choiceOf = ({ className }: SnapshotRequest, observed: WithClaim): SnapshotClassChoice | undefined => {
  const { snapshotClasses, snapshotClass } = observed;
  if (snapshotClasses !== undefined)
    return chooseSnapshotClass(snapshotClasses, driverOf(observed), className ?? snapshotClass);
  return snapshotClass === undefined ? undefined : { is: 'found', name: snapshotClass };
};

/** The driver of the volume, from the claim itself if Kubernetes recorded it: its class may be gone by now. */
const driverOf = ({ claim, storageClass }: WithClaim): string | undefined =>
  provisionerOf(claim) ?? storageClass?.provisioner;

export const snapshotState = (
  volume: Volume,
  before: ImageState,
  snapshot: VolumeSnapshot | undefined,
  context: PlanContext,
): ImageState => {
  const { name } = volume.snapshot ?? { name: '' };
  const state = { ...before, progress: 99, transfer: undefined, children: { ...before.children, snapshot: name } };
  const isLeaving = snapshot?.metadata.deletionTimestamp !== undefined;
  if (snapshot?.status?.readyToUse === true && !isLeaving) return usableState(volume, state);
  const error = snapshot?.status?.error?.message;
  const step =
    error === undefined
      ? { reason: 'Snapshotting', message: `waiting for VolumeSnapshot ${name} to become ready` }
      : { reason: 'SnapshotFailed', message: `VolumeSnapshot ${name} is in error: ${error}` };
  const wait = { ...step, phase: 'Snapshotting', child: snapshot, isComplaining: error !== undefined } as const;
  return storageWaitingState(volume, state, wait, context);
};

// The snapshot of a filled volume, and the classes that could make it.

export const readSnapshot = async (
  kube: KubeClient,
  { ref, snapshot: request, comesFromOriginal = false }: Volume,
): Promise<Pick<ObservedVolume, 'snapshot' | 'taken'>> => {
  if (request === undefined) return {};
  const { own, foreign } = await readOwn(kube, volumeSnapshots, ref, request.name);
  const [left] = foreign.filter((found) => comesFromOriginal && isLeftBy(found, ref.uid));
  return left === undefined ? { snapshot: own, taken: foreign[0] } : { snapshot: left };
};

/** Whether, according to status, only a snapshot is missing. */
export const isSnapshotLast = ({ snapshot, state, trustsStatus }: Volume): boolean =>
  snapshot !== undefined &&
  trustsStatus === true &&
  state.phase === 'Snapshotting' &&
  state.inspection !== undefined &&
  state.children?.volume !== undefined &&
  state.children.snapshot !== undefined;

/** Nothing if no snapshot is to be taken. */
export const readSnapshotting = async (
  kube: KubeClient,
  volume: Volume,
  claim: PersistentVolumeClaim,
): Promise<Partial<ObservedVolume>> => {
  const { snapshot: request, state } = volume;
  if (request === undefined) return {};
  const found = mayBe(volume, state.children?.snapshot) ? await readSnapshot(kube, volume) : {};
  if (found.snapshot !== undefined) return found;
  const marked = markedClass(volume, claim);
  if (marked !== undefined) return { ...found, snapshotClass: marked };
  const { storageClassName: className } = claim.spec;
  const storageClass = provisionerOf(claim) === undefined ? await readClass(kube, className) : undefined;
  const snapshotClasses = await readSnapshotClasses(kube);
  const driver = provisionerOf(claim) ?? storageClass?.provisioner;
  const fitting = snapshotClasses.filter((candidate) => candidate.driver === driver);
  const snapshotClass =
    request.className === undefined ? await readNamedSnapshotClass(kube, fitting, className) : undefined;
  return { ...found, storageClass, snapshotClasses, snapshotClass };
};

/** Recorded when the claim was created; determined again if that snapshot failed. */
const markedClass = ({ snapshot, trustsStatus }: Volume, { metadata }: PersistentVolumeClaim): string | undefined =>
  trustsStatus === true && snapshot?.className === undefined
    ? metadata.annotations?.[annotations.snapshotClass]
    : undefined;
