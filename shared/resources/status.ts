// The common part of status ↔ ImageState, lossless in both directions. Called by the dialects.
import { findCondition, setConditions, type DesiredCondition } from '#shared/api/conditions.ts';
import type { CommonImageStatus } from '#shared/api/image-status.ts';
import {
  type Filled,
  type ImagePhase,
  type ImageState,
  type TransferState,
  imagePhases,
  initialState,
} from '#shared/populate/filled.ts';
import { contentCondition } from '#shared/populate/loss.ts';
import { Inspection, transferPhases } from '#shared/transfer/report.ts';
import { z } from 'zod';
import { cloneStrategies } from '#shared/populate/clone/strategy.ts';
import { withoutUndefined } from '#shared/runtime/json.ts';

export const readyCondition = 'Ready';

/** The state that an earlier pass recorded. An empty status is that of a new image. */
export const toState = (status: CommonImageStatus | undefined, phase: string | undefined): ImageState => {
  const counts = toCounts(status ?? {});
  if (status === undefined || phase === undefined || !isPhase(phase)) {
    return { ...initialState, failures: counts.failures };
  }
  const ready = findCondition(status.conditions, readyCondition);
  return {
    phase,
    reason: ready?.reason ?? initialState.reason,
    message: ready?.message ?? '',
    ...counts,
    lastFailureTime: status.lastFailedTime,
    lastFailure: status.lastFailure,
    nextAttemptTime: status.nextAttemptTime,
    deadline: status.deadline,
    handledRetryToken: status.retryHandled,
    inspection: toInspection(status),
    digests: status.digests,
    lostDigests: status.lostDigests,
    storageClassName: status.storageClassName,
    fetchReason: status.fetchReason,
    servedFrom: status.servedFrom,
    children: status.children,
    transfer: toTransfer(status.transfer),
    announced: status.announced,
  };
};

const toCounts = ({
  progress = 0,
  attempts = 0,
  attemptsFailed = 0,
  failed = 0,
}: CommonImageStatus): Pick<ImageState, 'progress' | 'attempts' | 'attemptsFailed' | 'failures'> => ({
  progress,
  attempts,
  attemptsFailed,
  failures: failed,
});

const isPhase = (phase: string): phase is ImagePhase => (imagePhases as readonly string[]).includes(phase);

const toInspection = ({ format, compression, size, virtualSize }: CommonImageStatus): Inspection | undefined =>
  Inspection.safeParse({ format, compression, size, virtualSize }).data;

const toTransfer = (transfer: CommonImageStatus['transfer']): TransferState | undefined => {
  const phase = transferPhases.find((known) => known === transfer?.phase);
  return transfer === undefined || phase === undefined ? undefined : { ...transfer, phase };
};

export const toCommonStatus = (image: Filled, state: ImageState): CommonImageStatus => ({
  observedGeneration: image.generation,
  progress: state.progress,
  size: state.inspection?.size,
  virtualSize: state.inspection?.virtualSize,
  format: state.inspection?.format,
  compression: state.inspection?.compression,
  digests: state.digests === undefined ? undefined : { ...state.digests },
  lostDigests: state.lostDigests === undefined ? undefined : { ...state.lostDigests },
  storageClassName: state.storageClassName,
  fetchReason: state.fetchReason,
  servedFrom: state.servedFrom,
  attempts: state.attempts,
  attemptsFailed: state.attemptsFailed,
  attemptsAllowed: image.retries + 1,
  failed: state.failures,
  lastFailedTime: state.lastFailureTime,
  lastFailure: state.lastFailure,
  nextAttemptTime: state.nextAttemptTime,
  deadline: state.deadline,
  retryHandled: state.handledRetryToken,
  children: state.children,
  transfer: state.transfer,
  announced: state.announced,
});

/** Our conditions in addition to the kind's: Ready, True exactly if the image can be used; and after a loss, whether the content is the same. */
export const toOwnConditions = (state: ImageState): readonly DesiredCondition[] => {
  const ready = state.phase === 'Available' ? 'True' : 'False';
  const content = contentCondition(state);
  return [
    { type: readyCondition, status: ready, reason: state.reason, message: state.message },
    ...(content === undefined ? [] : [content]),
  ];
};

/** `status` with the conditions set, each for this generation, and without undefined fields. */
export const finishStatus = <S extends CommonImageStatus>(
  status: S,
  conditions: readonly DesiredCondition[],
  image: Filled,
  now: string,
): S => {
  const observed = conditions.map((condition) => ({ ...condition, observedGeneration: image.generation }));
  return withoutUndefined({ ...status, conditions: [...setConditions(status.conditions ?? [], observed, now)] });
};

// Status fields of every kind of volume, in addition to those of images.

interface CommonVolumeStatus extends CommonImageStatus {
  readonly cloneStrategy?: string | undefined;
  readonly cloneReason?: string | undefined;
}

const CloneStrategy = z.enum(cloneStrategies);

/** The state that an earlier pass recorded. */
export const toVolumeState = (status: CommonVolumeStatus | undefined, phase: string | undefined): ImageState => {
  const strategy = CloneStrategy.safeParse(status?.cloneStrategy).data;
  const clone = strategy === undefined ? {} : { clone: { strategy, because: status?.cloneReason ?? '' } };
  return { ...toState(status, phase), ...clone };
};

export const toVolumeStatus = (volume: Filled, state: ImageState): CommonVolumeStatus => ({
  ...toCommonStatus(volume, state),
  cloneStrategy: state.clone?.strategy,
  cloneReason: state.clone?.because,
});
