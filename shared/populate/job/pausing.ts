// An upload whose client is silent: its Job has ended, so that nothing runs; its bytes stay in the spool until the client returns, or for so long
// as the installation keeps them. Pure.
import { type Job, type PersistentVolumeClaim, persistentVolumeClaims } from '#shared/api/foreign/core.ts';
import { type Plan, type PlanContext, remove, removeJob } from '#shared/populate/actions.ts';
import type { Filled, ImageState } from '#shared/populate/filled.ts';
import { type TransferRun, isFinished } from '#shared/populate/job/attempts.ts';
import { failedState, isPast, isoTime } from '#shared/populate/state.ts';
import { uploadPaused } from '#shared/transfer/fault.ts';

/** The state after a Job ended for want of bytes; `undefined`: it did not. The deadline also identifies the pause, for the client that ends it. */
export const pausedBy = (
  state: ImageState,
  run: TransferRun,
  { now, settings }: PlanContext,
): ImageState | undefined => {
  if (run.is !== 'failed' || run.fault.reason !== uploadPaused) return undefined;
  const ended = Date.parse(run.fault.time ?? '');
  const deadline = isoTime((Number.isNaN(ended) ? now : ended) + settings.uploadKeepSeconds * 1000);
  const message = `${run.fault.message}; they are kept until ${deadline}, and the upload continues with the next bytes`;
  return {
    ...state,
    phase: 'Pending',
    reason: uploadPaused,
    message,
    deadline,
    nextAttemptTime: undefined,
    transfer: undefined,
  };
};

interface Held {
  readonly job?: Job | undefined;
  readonly spool?: PersistentVolumeClaim | undefined;
}

/** A Job that was started again is past the pause, whatever the recorded state says: a crash may have come before that was written. */
const isResumed = ({ state, resumedPause }: Filled, job: Job | undefined): boolean =>
  resumedPause !== undefined && resumedPause === state.deadline && (job === undefined || !isFinished(job));

/** The next step of an upload that is paused; `undefined`: it is not, or its client is back. */
export const planPaused = (image: Filled, { job, spool }: Held, { now }: PlanContext): Plan | undefined => {
  const { state } = image;
  if (state.reason !== uploadPaused || spool === undefined || isResumed(image, job)) return undefined;
  if (!isPast(state.deadline, now)) return { actions: removeJob(job), state };
  const message = `the rest of the file was not sent until ${state.deadline}, so its bytes were removed; start again with a new value of the annotation bullion.dev/retry, then upload`;
  return {
    actions: [...removeJob(job), ...remove(persistentVolumeClaims, spool)],
    state: failedState(state, 'UploadExpired', message),
  };
};

/** Without the deadline of a pause that is over: the start has one of its own. */
export const afterPause = <F extends Filled>(image: F): F =>
  image.state.reason === uploadPaused ? { ...image, state: { ...image.state, deadline: undefined } } : image;
