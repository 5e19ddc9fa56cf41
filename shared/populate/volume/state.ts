// State transitions specific to volumes. Called by the plans of this folder.
import type { PersistentVolumeClaim, StorageClass } from '#shared/api/foreign/core.ts';
import type { Filled, ImageState } from '#shared/populate/filled.ts';
import { noClassStep, restingState, waitingState } from '#shared/populate/state.ts';
import type { Population } from '#shared/populate/population.ts';
import { recordOf } from '#shared/populate/clone/strategy.ts';
import type { Volume } from '#shared/populate/volume/volume.ts';
import { annotations } from '#shared/api/names.ts';
import { isLeftBy } from '#shared/api/object.ts';
import type { Plan, PlanContext } from '#shared/populate/actions.ts';

/** Waits for an action of the user, without a deadline. */
export const rest = (volume: Filled, why: { readonly reason: string; readonly message: string }): Plan => ({
  actions: [],
  state: restingState(volume, why),
});

/** `because`: why it fetches bytes that others have or had; `undefined`: it does not. */
export const fetchedFor = <V extends Filled>(volume: V, because: string | undefined): V => ({
  ...volume,
  state: { ...volume.state, fetchReason: because },
});

/** A version of a cron in a cluster without a default class. */
export const unplaced = {
  reason: 'StorageClassNotFound',
  message: 'the cluster has no default storage class: mark one as default, and this volume is made in it',
} as const;

/** Waits for a class that an administrator may create, with a deadline. */
export const noClass = (volume: Volume, sourceClass: string | undefined, context: PlanContext): Plan => {
  const step = noClassStep(volume.claim.className ?? sourceClass, 'this object');
  return { actions: [], state: waitingState(volume, volume.state, step, context) };
};

/** Whether the volume must not be filled before it has a consumer. */
export const isHeldBack = ({ waitsForConsumer }: Volume, storageClass: StorageClass | undefined): boolean =>
  waitsForConsumer && storageClass?.volumeBindingMode === 'WaitForFirstConsumer';

/** Machines are started once their volumes report this. */
export const restForConsumer = (volume: Filled, { metadata }: Pick<PersistentVolumeClaim, 'metadata'>): Plan =>
  rest(volume, {
    reason: 'WaitForFirstConsumer',
    message: `claim ${metadata.name} is bound once a virtual machine uses it, as its storage class asks`,
  });

/** Whether its bytes were complete once: its clones depend on them. */
export const wasFilled = ({ state: { phase } }: Filled): boolean => phase === 'Available' || phase === 'Snapshotting';

/** The claim that its original controller made and filled: it is taken over as it is. */
export const isLeft = ({ comesFromOriginal, ref }: Filled, claim: PersistentVolumeClaim | undefined): boolean =>
  comesFromOriginal === true && claim !== undefined && isLeftBy(claim, ref.uid);

/** A crash may have happened between creating the claim and recording why it is fetched. */
export const fetchReasonOf = ({ fetchReason }: ImageState, { metadata }: PersistentVolumeClaim): string | undefined =>
  fetchReason ?? metadata.annotations?.[annotations.fetchReason];

export const filledState = (
  { state }: Filled,
  claim: PersistentVolumeClaim,
  { inspection, digests, servedFrom }: Population,
): ImageState => ({
  ...state,
  inspection,
  digests,
  // A clone has the population of its source, but was not fetched.
  servedFrom: recordOf(claim) === undefined ? servedFrom : undefined,
  clone: cloneOf(claim),
  lastFailure: undefined,
  fetchReason: fetchReasonOf(state, claim),
  storageClassName: claim.spec.storageClassName ?? state.storageClassName,
  children: { ...state.children, volume: claim.metadata.name },
});

export const cloneOf = (claim: PersistentVolumeClaim): ImageState['clone'] => {
  const record = recordOf(claim);
  return record === undefined ? undefined : { strategy: record.strategy, because: record.because };
};

/** Neither terminating nor lost. */
export const isWhole = ({ metadata, status }: PersistentVolumeClaim): boolean =>
  metadata.deletionTimestamp === undefined && status?.phase !== 'Lost';
