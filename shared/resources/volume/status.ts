// The part of status that every kind of volume has, beyond what images have too. Called by the dialects of volumes.
import { z } from 'zod';
import type { CommonImageStatus } from '#shared/api/image-status.ts';
import type { Filled, ImageState } from '#shared/backends/image.ts';
import { cloneStrategies } from '#shared/populate/clone.ts';
import { toCommonStatus, toState } from '#shared/resources/status.ts';

interface CommonVolumeStatus extends CommonImageStatus {
  readonly cloneStrategy?: string | undefined;
  readonly cloneReason?: string | undefined;
}

const CloneStrategy = z.enum(cloneStrategies);

/** Reads what an earlier pass wrote down. */
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
