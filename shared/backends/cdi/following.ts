// A DataVolume told as the state of its image. CDI tries for ever and tells its trouble in conditions and counts: what is enough is decided
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
import type { Image } from '#shared/backends/image.ts';

/** Trouble that CDI tells in its Running condition, and would try again for ever. */
const isTrouble = (reason: string): boolean =>
  /Error|^Err[A-Z]|Failed|OOMKilled|BackOff|ImagePull|Unschedulable|ClaimLost/.test(reason);

interface Trouble {
  readonly reason: string;
  readonly message: string;
}

const conditionOf = ({ status }: DataVolume, type: string) => findCondition(status?.conditions, type);

/** What a DataVolume complains about: of its last attempt, or of its claim. */
export const troubleOf = (dataVolume: DataVolume): Trouble | undefined => {
  const told = [conditionOf(dataVolume, 'Running'), conditionOf(dataVolume, 'Bound')];
  const found = told.find((condition) => condition?.status !== 'True' && isTrouble(condition?.reason ?? ''));
  if (found === undefined) return undefined;
  return { reason: found.reason ?? 'ImportFailed', message: redact(found.message || (found.reason ?? '')) };
};

/** Whole percent; what is not told is nothing yet. */
const percentOf = ({ status }: DataVolume): number => {
  const percent = Number.parseFloat(status?.progress ?? '');
  return Number.isFinite(percent) ? Math.min(98, Math.max(0, Math.floor(percent))) : 0;
};

/**
 * The state so far with what a DataVolume tells of its attempts. Ours say how many have begun; CDI counts restarts, and one is under way beside them
 * until it has failed for good.
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
    // Each attempt begins anew.
    progress: attempts > state.attempts ? 0 : state.progress,
    attemptsFailed: Math.max(state.attemptsFailed, failed),
    failures: state.failures + newFailures,
    lastFailure: trouble ?? state.lastFailure,
    lastFailureTime: newFailures > 0 ? isoTime(now) : state.lastFailureTime,
    inspection: state.inspection ?? inspectedOf(dataVolume),
    children: { ...state.children, volume: dataVolume.metadata.name },
  };
};

/** What begins as it was to begin tells nothing that its image does not say. */
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
  // As the DataVolume does: whose machine it is stops it when it suits them.
  if (hindrance.reason === 'SourceInUse') return { actions: [], state: restingState({ ...image, state }, hindrance) };
  return stopIfStuck(dataVolume, waitingState(image, state, { phase: 'Pending', ...hindrance }, context));
};

const hasUsedUp = ({ retries }: Image, { attemptsFailed }: ImageState): boolean => attemptsFailed > retries;

/** Left alone, it would be tried for ever. That its attempts are used up is written down before it goes: nothing else would know it afterwards. */
const stopTrying = (image: Image, state: ImageState, dataVolume: DataVolume): Plan => {
  const ended = endOf(state, dataVolume, 'the last');
  if (hasUsedUp(image, image.state)) return { actions: remove(dataVolumeKind.type, dataVolume), state: ended };
  const message = `the last attempt failed, and DataVolume ${dataVolume.metadata.name} is being stopped: ${ended.message}`;
  const step = { phase: 'Pending', reason: 'Stopping', message } as const;
  return { actions: [], state: { ...state, ...step, deadline: undefined, nextAttemptTime: undefined } };
};

/** The end of an image whose DataVolume was stopped, and is gone before that was written down; `undefined` where that is not so. */
export const stoppedState = (image: Image): ImageState | undefined => {
  const { state } = image;
  if (!hasUsedUp(image, state)) return undefined;
  const { reason, message } = state.lastFailure ?? unnamed;
  return failedState(state, reason, `${message} (attempt ${state.attempts}, the last); ${retryHint}`);
};

const endOf = (state: ImageState, dataVolume: DataVolume, end: string): ImageState => {
  // The newest attempt may already run again, and then the DataVolume complains about nothing.
  const { reason, message } = namedFaultOf(dataVolume) ?? troubleOf(dataVolume) ?? state.lastFailure ?? unnamed;
  return failedState(state, reason, `${redact(message)} (attempt ${state.attempts}, ${end}); ${retryHint}`);
};

const unnamed: Trouble = { reason: 'ImportFailed', message: 'the DataVolume failed without a reason' };

/** Our own DataVolumes name the fault where CDI has one word for all. */
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

/** Bounded by what all its attempts may take. */
const followRunning = (image: Image, state: ImageState, dataVolume: DataVolume, context: PlanContext): Plan => {
  const { now, settings } = context;
  const isNew = image.state.phase !== 'Downloading' || image.state.attempts !== state.attempts;
  const deadline = isNew
    ? isoTime(now + (settings.attemptSeconds + settings.childSeconds) * 1000)
    : image.state.deadline;
  if (isPast(deadline, now)) {
    const stuck = failedState(state, 'DeadlineExceeded', `the import took longer than it may; ${retryHint}`);
    return stopIfStuck(dataVolume, stuck);
  }
  const progress = Math.max(state.progress, percentOf(dataVolume));
  const before = state.lastFailure === undefined ? '' : `; the attempt before failed: ${state.lastFailure.message}`;
  const message = `attempt ${state.attempts} of ${image.retries + 1}: filling DataVolume ${dataVolume.metadata.name}${before}`;
  return { actions: [], state: { ...state, phase: 'Downloading', reason: 'Downloading', message, progress, deadline } };
};
