// The original's phase, progress and conditions of a DataVolume, from the state it has come to. Pure.
import type { WantedCondition } from '#shared/api/cdi/conditions.ts';
import type { ImageState } from '#shared/backends/image.ts';
import type { VolumeSource } from '#shared/resources/volume/volume.ts';

const isRunning = ({ phase }: ImageState): boolean =>
  phase === 'Downloading' || phase === 'Converting' || phase === 'Verifying';

export const phaseOf = (state: ImageState, source: VolumeSource | undefined): string => {
  if (state.phase === 'Available') return 'Succeeded';
  if (state.phase === 'Failed') return 'Failed';
  if (state.reason === 'WaitForFirstConsumer')
    return isFilledByStorage(state) ? 'PendingPopulation' : 'WaitForFirstConsumer';
  if (isUpload(source)) return uploadPhase(state);
  if (source?.type !== 'object') return importPhase(state);
  return clonePhase(state);
};

const isFilledByStorage = ({ clone }: ImageState): boolean => clone !== undefined && clone.strategy !== 'copy';

const isUpload = (source: VolumeSource | undefined): boolean =>
  source?.type === 'transfer' && source.from.type === 'upload';

/** Ready as long as somebody listens: `virtctl` waits for this phase, then sends. */
const uploadPhase = (state: ImageState): string => {
  if (isRunning(state)) return 'UploadReady';
  return state.children?.volume === undefined ? 'Pending' : 'UploadScheduled';
};

const importPhase = (state: ImageState): string => {
  if (isRunning(state)) return 'ImportInProgress';
  return state.children?.volume === undefined ? 'Pending' : 'ImportScheduled';
};

const clonePhase = (state: ImageState): string => {
  if (state.reason === 'Snapshotting') return 'SnapshotForSmartCloneInProgress';
  if (state.children?.volume === undefined) return 'Pending';
  switch (state.clone?.strategy) {
    case 'snapshot':
      return 'CloneFromSnapshotSourceInProgress';
    case 'csi-clone':
      return 'CSICloneInProgress';
    default:
      return isRunning(state) ? 'CloneInProgress' : 'CloneScheduled';
  }
};

/** `N/A` until bytes move, then percent with two digits; `100.0%` is said of what succeeded alone. */
export const progressOf = (state: ImageState): string => {
  if (state.phase === 'Available') return '100.0%';
  const percent = state.transfer?.percent;
  return isRunning(state) && percent !== undefined ? `${percent.toFixed(2)}%` : 'N/A';
};

const toBound = (state: ImageState): WantedCondition => {
  const type = 'Bound';
  const name = state.children?.volume;
  if (state.reason === 'VolumeLost') return { type, status: 'False', reason: 'ClaimLost', message: 'Claim Lost' };
  if (name === undefined) return { type, status: 'False', reason: 'NotFound', message: 'No PVC found' };
  const isBound = state.phase === 'Available' || isRunning(state);
  return isBound
    ? { type, status: 'True', reason: 'Bound', message: `PVC ${name} Bound` }
    : { type, status: 'False', reason: 'Pending', message: `PVC ${name} Pending` };
};

const toRunning = (state: ImageState): WantedCondition => {
  const type = 'Running';
  if (isRunning(state)) return { type, status: 'True', reason: 'Pod is running', message: '' };
  if (state.phase === 'Available') return { type, status: 'False', reason: 'Completed', message: 'Import Complete' };
  if (state.lastFailure === undefined) return { type, status: 'False', reason: state.reason, message: state.message };
  return { type, status: 'False', reason: 'Error', message: state.lastFailure.message };
};

export const conditionsOf = (state: ImageState): readonly WantedCondition[] => [
  toBound(state),
  toRunning(state),
  {
    type: 'Ready',
    status: state.phase === 'Available' ? 'True' : 'False',
    reason: state.reason,
    message: state.message,
  },
];
