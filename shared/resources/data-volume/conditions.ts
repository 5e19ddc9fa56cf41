// The original's conditions of a DataVolume, from the state it has come to: reasons that KubeVirt and Harvester look for, and our own words of what is
// wrong behind those of CDI. Pure.
import type { WantedCondition } from '#shared/api/cdi/conditions.ts';
import type { ImageState } from '#shared/backends/image.ts';
import { isRunning } from '#shared/resources/data-volume/phase.ts';

/** In Kubernetes' words; KubeVirt tells a machine's owner of it. */
const isQuota = ({ message }: ImageState): boolean => message.includes('exceeded quota');

/** A worker that has come to an end, well or not, had its claim. */
const isBound = (state: ImageState): boolean =>
  state.phase === 'Available' || isRunning(state) || state.attemptsFailed > 0;

/** Waiting that is as it should be has nothing to add. */
const quiet: readonly string[] = ['Pending', 'Starting', 'Cloning'];

const toBound = (state: ImageState): WantedCondition => {
  const type = 'Bound';
  const name = state.children?.volume;
  if (state.reason === 'VolumeLost') return { type, status: 'False', reason: 'ClaimLost', message: 'Claim Lost' };
  if (isQuota(state)) return { type, status: 'False', reason: 'ErrExceededQuota', message: state.message };
  if (name === undefined) return { type, status: 'False', reason: 'NotFound', message: 'No PVC found' };
  if (isBound(state)) return { type, status: 'True', reason: 'Bound', message: `PVC ${name} Bound` };
  const detail = quiet.includes(state.reason) ? '' : `: ${state.message}`;
  return { type, status: 'False', reason: 'Pending', message: `PVC ${name} Pending${detail}` };
};

/** Reasons of the kubelet while a worker has no image to run. */
const pullTrouble = /^(Err)?Image|^ErrImage|^InvalidImageName$|^RegistryUnavailable$/;

/** What keeps a worker from running, in the original's words; ours follow. */
const hindranceOf = ({ reason, message }: ImageState): Pick<WantedCondition, 'reason' | 'message'> => {
  if (pullTrouble.test(reason)) return { reason: 'ImagePullFailed', message: `failed to pull image: ${message}` };
  if (reason === 'Unschedulable') return { reason, message: `Importer pod cannot be scheduled: ${message}` };
  return reason === 'Starting' ? { reason: 'ContainerCreating', message } : { reason, message };
};

const faultReasons: Readonly<Record<string, string>> = {
  ChecksumMismatch: 'ChecksumError',
  WorkerOutOfMemory: 'OOMKilled',
};

/** What the original says of every disk that its volume has no room for. */
const tooSmall: readonly string[] = ['TargetTooSmall', 'ImageTooLarge', 'TargetFull'];

type Fault = NonNullable<ImageState['lastFailure']>;

/** That of the newest attempt, or what ended it without one. */
const newestFault = ({ phase, reason, message, lastFailure }: ImageState): Fault | undefined =>
  lastFailure ?? (phase === 'Failed' ? { reason, message } : undefined);

const toldFault = ({ reason, message }: Fault): Pick<WantedCondition, 'reason' | 'message'> => ({
  reason: faultReasons[reason] ?? 'Error',
  message: tooSmall.includes(reason) ? `DataVolume too small to contain image: ${message}` : message,
});

const toRunning = (state: ImageState): WantedCondition => {
  const type = 'Running';
  if (isRunning(state)) return { type, status: 'True', reason: 'Pod is running', message: '' };
  if (state.phase === 'Available') return { type, status: 'False', reason: 'Completed', message: 'Import Complete' };
  const fault = newestFault(state);
  return { type, status: 'False', ...(fault === undefined ? hindranceOf(state) : toldFault(fault)) };
};

const toReady = (state: ImageState): WantedCondition => ({
  type: 'Ready',
  status: state.phase === 'Available' ? 'True' : 'False',
  reason: isRunning(state) ? 'TransferRunning' : state.reason,
  message: state.message,
});

export const conditionsOf = (state: ImageState): readonly WantedCondition[] => [
  toBound(state),
  toRunning(state),
  toReady(state),
];
