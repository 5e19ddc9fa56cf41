// Derives the state of an image from its DataVolume. CDI retries forever and reports problems in conditions and counters; the limit is decided
// here. Pure.
import { type DataVolume, dataVolumeKind } from '#shared/api/cdi/data-volume.ts';
import { findCondition } from '#shared/api/conditions.ts';
import { remove, type Plan, type PlanContext } from '#shared/populate/actions.ts';
import { type ObservedCdi, runningPhases } from '#shared/backends/cdi/observed.ts';
import type { ImageState } from '#shared/populate/filled.ts';
import { isLeaving } from '#shared/populate/watched-child.ts';
import { failedState, isPast, isoTime, restingState, retryHint, waitingState } from '#shared/populate/state.ts';
import { inspectedOf } from '#shared/populate/population.ts';
import { redact } from '#shared/runtime/redact.ts';
import type { Image } from '#shared/backends/backend.ts';

/** A problem in CDI's Running condition, which CDI would retry forever. */
const isTrouble = (reason: string): boolean =>
  /Error|^Err[A-Z]|Failed|OOMKilled|BackOff|ImagePull|Unschedulable|ClaimLost/.test(reason);

interface Trouble {
  readonly reason: string;
  readonly message: string;
}

const conditionOf = ({ status }: DataVolume, type: string) => findCondition(status?.conditions, type);

/** The current problem of a DataVolume: of its last attempt, or of its claim. */
export const troubleOf = (dataVolume: DataVolume): Trouble | undefined => {
  const reported = [conditionOf(dataVolume, 'Running'), conditionOf(dataVolume, 'Bound')];
  const found = reported.find((condition) => condition?.status !== 'True' && isTrouble(condition?.reason ?? ''));
  if (found === undefined) return undefined;
  return { reason: found.reason ?? 'ImportFailed', message: redact(found.message || (found.reason ?? '')) };
};

/** Whole percent; 0 if unknown. */
const percentOf = ({ status }: DataVolume): number => {
  const percent = Number.parseFloat(status?.progress ?? '');
  return Number.isFinite(percent) ? Math.min(98, Math.max(0, Math.floor(percent))) : 0;
};

/**
 * The state so far, with the attempts of a DataVolume. Our DataVolumes report started attempts; CDI reports restarts, to which the running
 * attempt is added until it has failed for good.
 */
export const counted = (image: Image, dataVolume: DataVolume, { now }: Pick<PlanContext, 'now'>): ImageState => {
  const { state } = image;
  const most = image.retries + 1;
  const { phase, detail, restartCount: restarts = 0 } = dataVolume.status ?? {};
  const failed = Math.min(restarts, most);
  const isOver = phase === 'Failed';
  const begun = detail?.attempts || (isOver ? Math.max(1, failed) : failed + 1);
  const attempts = Math.max(state.attempts, Math.min(begun, most));
  const newFailures = Math.max(0, failed - state.attemptsFailed);
  const trouble = failed > 0 || isOver ? troubleOf(dataVolume) : undefined;
  return {
    ...state,
    attempts,
    // Each attempt starts at 0.
    progress: attempts > state.attempts ? 0 : state.progress,
    attemptsFailed: Math.max(state.attemptsFailed, failed),
    failures: state.failures + newFailures,
    lastFailure: trouble ?? state.lastFailure,
    lastFailureTime: newFailures > 0 ? isoTime(now) : state.lastFailureTime,
    inspection: state.inspection ?? inspectedOf(dataVolume),
    children: { ...state.children, volume: dataVolume.metadata.name },
  };
};

/** A DataVolume that has just started has no news for its image. */
export const hasNews = (dataVolume: DataVolume): boolean => {
  const { phase = '', restartCount = 0 } = dataVolume.status ?? {};
  if (dataVolume.status === undefined) return isLeaving(dataVolume);
  const isQuiet = ['', 'Starting'].includes(conditionOf(dataVolume, 'Ready')?.reason ?? '');
  const isBeginning = beginningPhases.includes(phase) && isQuiet && restartCount === 0;
  return !isBeginning || troubleOf(dataVolume) !== undefined || isLeaving(dataVolume);
};

const beginningPhases: readonly string[] = ['ImportScheduled', 'CloneScheduled'];

type Following = ObservedCdi & { readonly dataVolume: DataVolume };

export const followDataVolume = (image: Image, observed: Following, context: PlanContext): Plan => {
  const { dataVolume } = observed;
  const state = counted(image, dataVolume, context);
  const { phase = '' } = dataVolume.status ?? {};
  if (phase === 'Failed') return { actions: [], state: endOf(state, dataVolume, 'not retried') };
  if (hasUsedUp(image, state)) return stopTrying(image, state, dataVolume);
  if (runningPhases.includes(phase)) return followRunning(image, state, dataVolume, context);
  const hindrance = hindranceOf(observed);
  // Like the DataVolume: the user decides when to stop the machine.
  if (hindrance.reason === 'SourceInUse') return { actions: [], state: restingState({ ...image, state }, hindrance) };
  return stopIfStuck(dataVolume, waitingState(image, state, { phase: 'Pending', ...hindrance }, context));
};

const hasUsedUp = ({ retries }: Image, { attemptsFailed }: ImageState): boolean => attemptsFailed > retries;

/** CDI would retry forever. The last failure is recorded before the DataVolume is deleted: afterwards it would be lost. */
const stopTrying = (image: Image, state: ImageState, dataVolume: DataVolume): Plan => {
  const ended = endOf(state, dataVolume, 'the last');
  if (hasUsedUp(image, image.state)) return { actions: remove(dataVolumeKind.type, dataVolume), state: ended };
  const message = `the last attempt failed, and DataVolume ${dataVolume.metadata.name} is being stopped: ${ended.message}`;
  const step = { phase: 'Pending', reason: 'Stopping', message } as const;
  return { actions: [], state: { ...state, ...step, deadline: undefined, nextAttemptTime: undefined } };
};

/** The final state of an image whose DataVolume was stopped and deleted before that was recorded; `undefined` if that is not the case. */
export const stoppedState = (image: Image): ImageState | undefined => {
  const { state } = image;
  if (!hasUsedUp(image, state)) return undefined;
  const { reason, message } = state.lastFailure ?? unnamed;
  return failedState(state, reason, `${message} (attempt ${state.attempts}, the last); ${retryHint}`);
};

const endOf = (state: ImageState, dataVolume: DataVolume, end: string): ImageState => {
  // The latest attempt may already be running again; then the DataVolume reports no problem.
  const { reason, message } = namedFaultOf(dataVolume) ?? troubleOf(dataVolume) ?? state.lastFailure ?? unnamed;
  return failedState(state, reason, `${redact(message)} (attempt ${state.attempts}, ${end}); ${retryHint}`);
};

const unnamed: Trouble = { reason: 'ImportFailed', message: 'the DataVolume failed without a reason' };

/** Our own DataVolumes report a specific reason where CDI has a generic one. */
const namedFaultOf = (dataVolume: DataVolume): Trouble | undefined => {
  const { reason, message = '' } = conditionOf(dataVolume, 'Ready') ?? {};
  const isNamed = dataVolume.status?.phase === 'Failed' && reason !== undefined && !isTrouble(reason);
  return isNamed ? { reason, message } : undefined;
};

const hindranceOf = ({ dataVolume, warnings: [warning] = [] }: Following): Trouble => {
  const trouble = troubleOf(dataVolume);
  if (trouble !== undefined) return trouble;
  if (warning !== undefined) return { reason: warning.reason ?? 'Starting', message: redact(warning.message ?? '') };
  return waitOf(dataVolume);
};

const waitOf = (dataVolume: DataVolume): Trouble => {
  const { reason, message } = conditionOf(dataVolume, 'Ready') ?? {};
  const phase = dataVolume.status?.phase || 'Pending';
  return {
    reason: reason || 'Starting',
    message: message || `DataVolume ${dataVolume.metadata.name} is in phase ${phase}`,
  };
};

const stopIfStuck = (dataVolume: DataVolume, state: ImageState): Plan => ({
  actions: state.phase === 'Failed' ? remove(dataVolumeKind.type, dataVolume) : [],
  state,
});

/** The deadline covers all its attempts. */
const followRunning = (image: Image, state: ImageState, dataVolume: DataVolume, context: PlanContext): Plan => {
  const { now, settings } = context;
  const isNew = image.state.phase !== 'Downloading' || image.state.attempts !== state.attempts;
  const deadline = isNew
    ? isoTime(now + (settings.attemptSeconds + settings.childSeconds) * 1000)
    : image.state.deadline;
  if (isPast(deadline, now)) {
    const stuck = failedState(state, 'DeadlineExceeded', `the import exceeded its deadline; ${retryHint}`);
    return stopIfStuck(dataVolume, stuck);
  }
  const progress = Math.max(state.progress, percentOf(dataVolume));
  const before = state.lastFailure === undefined ? '' : `; the attempt before failed: ${state.lastFailure.message}`;
  const message = `attempt ${state.attempts} of ${image.retries + 1}: filling DataVolume ${dataVolume.metadata.name}${before}`;
  return { actions: [], state: { ...state, phase: 'Downloading', reason: 'Downloading', message, progress, deadline } };
};
