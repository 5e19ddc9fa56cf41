// The original's phase and progress of a DataVolume, from the state it has come to. Pure.
import type { ImageState } from '#shared/backends/image.ts';
import { isSent } from '#shared/populate/source.ts';
import type { VolumeSource } from '#shared/resources/volume/volume.ts';

/** Whether bytes move. */
export const isRunning = ({ phase }: ImageState): boolean =>
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

const isUpload = (source: VolumeSource | undefined): boolean => source?.type === 'transfer' && isSent(source.from);

/** Ready as long as somebody listens: `virtctl` waits for this phase, then sends. */
const uploadPhase = (state: ImageState): string => {
  if (isRunning(state)) return 'UploadReady';
  return state.children?.volume === undefined ? 'Pending' : 'UploadScheduled';
};

const importPhase = (state: ImageState): string => {
  if (isRunning(state)) return 'ImportInProgress';
  return state.children?.volume === undefined ? 'Pending' : 'ImportScheduled';
};

/** What a clone is at beside copying, in the original's words. */
const cloneSteps: Readonly<Record<string, string>> = {
  Snapshotting: 'SnapshotForSmartCloneInProgress',
  Binding: 'PrepClaimInProgress',
  HandingOver: 'RebindInProgress',
};

const clonePhase = (state: ImageState): string => {
  const step = cloneSteps[state.reason];
  if (step !== undefined) return step;
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
