// CDI's conditions of a DataVolume, from its state: reasons that KubeVirt and Harvester look for, and our messages after those of CDI. Pure.
import type { WantedCondition } from '#shared/api/conditions.ts';
import type { ImageState } from '#shared/populate/filled.ts';
import type { Note } from '#shared/resources/transitions.ts';
import { contentCondition } from '#shared/populate/loss.ts';
import { isSent } from '#shared/populate/source.ts';
import type { Volume, VolumeSource } from '#shared/populate/volume/volume.ts';
import { lookup } from '#shared/runtime/lookup.ts';
import { uploadPaused } from '#shared/transfer/fault.ts';

/** Kubernetes' message; KubeVirt shows it to the owner of a machine. */
const isQuota = ({ message }: ImageState): boolean => message.includes('exceeded quota');

/** The worker has ended, successfully or not, so its claim was bound. CDI reports the claim of an upload as bound once it contains the file. */
const isBound = (state: ImageState, source: VolumeSource | undefined): boolean =>
  state.phase === 'Available' || (!isUpload(source) && (isRunning(state) || state.attemptsFailed > 0));

/** Normal waiting has no message. */
const quiet: readonly string[] = ['Pending', 'Starting', 'Cloning'];

/** Reasons with another name in CDI. */
const originalReasons: Readonly<Record<string, string>> = {
  TargetTooSmall: 'CloneValidationFailed',
  TargetNotFileSystem: 'CloneValidationFailed',
  ContentTypeDiffers: 'CloneValidationFailed',
  StorageClassNotFound: 'ErrClaimNotValid',
  ErrClaimNotValid: 'ErrClaimNotValid',
};

/**
 * Why no claim can be created yet, or ever. A transfer that found nothing at its URL has failed an attempt; a clone without a source waits for
 * it.
 */
const originalReasonOf = ({ phase, reason, lastFailure }: ImageState): string | undefined =>
  reason === 'SourceNotFound' && phase === 'Pending' && lastFailure === undefined
    ? 'CloneWithoutSource'
    : lookup(originalReasons, reason);

const toBound = (state: ImageState, source: VolumeSource | undefined): WantedCondition => {
  const type = 'Bound';
  const name = state.children?.volume;
  if (state.reason === 'VolumeLost') return { type, status: 'False', reason: 'ClaimLost', message: 'Claim Lost' };
  if (isQuota(state)) return { type, status: 'False', reason: 'ErrExceededQuota', message: state.message };
  const original = originalReasonOf(state);
  if (original !== undefined) return { type, status: 'False', reason: original, message: state.message };
  if (name === undefined) return { type, status: 'False', reason: 'NotFound', message: 'No PVC found' };
  if (isBound(state, source)) return { type, status: 'True', reason: 'Bound', message: `PVC ${name} Bound` };
  const detail = quiet.includes(state.reason) || isRunning(state) ? '' : `: ${state.message}`;
  return { type, status: 'False', reason: 'Pending', message: `PVC ${name} Pending${detail}` };
};

/** Reasons of the kubelet while the image of a worker is not available. */
const pullTrouble = /^(Err)?Image|^ErrImage|^InvalidImageName$|^RegistryUnavailable$/;

/** Why a worker does not run, in CDI's words followed by ours. */
const hindranceOf = ({ reason, message }: ImageState): Pick<WantedCondition, 'reason' | 'message'> => {
  if (pullTrouble.test(reason)) return { reason: 'ImagePullFailed', message: `failed to pull image: ${message}` };
  if (reason === 'Unschedulable') return { reason, message: `Importer pod cannot be scheduled: ${message}` };
  return reason === 'Starting' ? { reason: 'ContainerCreating', message } : { reason, message };
};

const faultReasons: Readonly<Record<string, string>> = {
  ChecksumMismatch: 'ChecksumError',
  WorkerOutOfMemory: 'OOMKilled',
};

/** CDI's message for every disk that does not fit into its volume. */
const tooSmall: readonly string[] = ['TargetTooSmall', 'ImageTooLarge', 'TargetFull'];

type Fault = NonNullable<ImageState['lastFailure']>;

/** The fault of the latest attempt, or the final failure without an attempt. */
const newestFault = ({ phase, reason, message, lastFailure }: ImageState): Fault | undefined =>
  lastFailure ?? (phase === 'Failed' ? { reason, message } : undefined);

const reportedFault = ({ reason, message }: Fault): Pick<WantedCondition, 'reason' | 'message'> => ({
  reason: lookup(faultReasons, reason) ?? 'Error',
  message: tooSmall.includes(reason) ? `DataVolume too small to contain image: ${message}` : message,
});

const toRunning = (state: ImageState): WantedCondition => {
  const type = 'Running';
  if (isRunning(state)) return { type, status: 'True', reason: 'Pod is running', message: '' };
  if (state.phase === 'Available') {
    const message = state.clone === undefined ? 'Import Complete' : 'Clone Complete';
    return { type, status: 'False', reason: 'Completed', message };
  }
  const fault = newestFault(state);
  return { type, status: 'False', ...(fault === undefined ? hindranceOf(state) : reportedFault(fault)) };
};

const toReady = (state: ImageState): WantedCondition => ({
  type: 'Ready',
  status: state.phase === 'Available' ? 'True' : 'False',
  reason: isRunning(state) ? 'TransferRunning' : (originalReasonOf(state) ?? state.reason),
  message: state.message,
});

/** Reasons of Events that CDI's clients look for. */
const progressReasons = ({ source }: Volume): { readonly running: string; readonly done: string } => {
  if (source?.type === 'object') return { running: 'CloneInProgress', done: 'CloneSucceeded' };
  return source?.type === 'transfer' && isSent(source.from)
    ? { running: 'UploadReady', done: 'UploadSucceeded' }
    : { running: 'ImportInProgress', done: 'ImportSucceeded' };
};

/** CDI's Events of a step, in addition to our own. Each is recorded once. */
export const notesOfDataVolume = (before: ImageState, after: ImageState, volume: Volume): readonly Note[] => {
  const { running, done } = progressReasons(volume);
  const { name } = volume.claim;
  const run = `${after.handledRetryToken ?? ''}`;
  const [wasBound, isBoundNow] = [toBound(before, volume.source), toBound(after, volume.source)];
  const hindrance = originalReasonOf(after);
  const isNew = after.reason !== before.reason;
  return [
    ...(isNew && hindrance !== undefined ? [note('Warning', hindrance, after.message, run)] : []),
    ...(['Pending', 'Bound'].includes(isBoundNow.reason ?? '') && isBoundNow.reason !== wasBound.reason
      ? [note('Normal', isBoundNow.reason ?? '', isBoundNow.message, run)]
      : []),
    ...(isRunning(after) && !isRunning(before)
      ? [note('Normal', running, `the transfer into PVC ${name} runs`, run)]
      : []),
    ...(after.phase === 'Available' && before.phase !== 'Available'
      ? [note('Normal', done, `PVC ${name} is filled`, run)]
      : []),
  ];
};

const note = (type: Note['type'], reason: string, message: string | undefined, run: string): Note => ({
  type,
  reason,
  message: message ?? '',
  occurrence: `${reason}/${run}`,
});

export const conditionsOf = (state: ImageState, source?: VolumeSource): readonly WantedCondition[] => [
  toBound(state, source),
  toRunning(state),
  toReady(state),
  ...[contentCondition(state)].filter((condition) => condition !== undefined),
];

// CDI's phase and progress of a DataVolume, from its state. Pure.

/** Whether data is being transferred. */
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

export const isUpload = (source: VolumeSource | undefined): boolean =>
  source?.type === 'transfer' && isSent(source.from);

/** The status reported so far. */
interface Said {
  readonly phase?: string | undefined;
  readonly restartCount?: number | undefined;
}

/** A ready upload stays ready until it ends or its worker fails: a pass that does not find the pod, because of a stale read, does not revert it. */
export const steadyPhase = (phase: string, before: Said | undefined, { attemptsFailed }: ImageState): string =>
  phase === 'UploadScheduled' && before?.phase === 'UploadReady' && attemptsFailed === (before.restartCount ?? 0)
    ? before.phase
    : phase;

/** Ready while the pod waits for the upload, or is started by the next bytes: `virtctl` waits for this phase, then sends. */
const uploadPhase = (state: ImageState): string => {
  const isPaused = state.reason === uploadPaused;
  if (isRunning(state) || isPaused) return 'UploadReady';
  return state.children?.volume === undefined ? 'Pending' : 'UploadScheduled';
};

const importPhase = (state: ImageState): string => {
  if (isRunning(state)) return 'ImportInProgress';
  return state.children?.volume === undefined ? 'Pending' : 'ImportScheduled';
};

/** Steps of a clone besides copying, in CDI's words. */
const cloneSteps: Readonly<Record<string, string>> = {
  Snapshotting: 'SnapshotForSmartCloneInProgress',
  Binding: 'PrepClaimInProgress',
  HandingOver: 'RebindInProgress',
};

const clonePhase = (state: ImageState): string => {
  const step = lookup(cloneSteps, state.reason);
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

/** `N/A` before the transfer starts, then percent with two digits; `100.0%` only after success. CDI reports no progress of an upload. */
export const progressOf = (state: ImageState, source?: VolumeSource): string => {
  if (state.phase === 'Available') return '100.0%';
  if (isUpload(source)) return 'N/A';
  const percent = state.transfer?.percent;
  return isRunning(state) && percent !== undefined ? `${percent.toFixed(2)}%` : 'N/A';
};
