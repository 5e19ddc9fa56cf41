// A DataVolume told as the state of its image. CDI tries for ever and tells its trouble in conditions and counts: what is enough is decided
// here. Pure.
import { type DataVolume, dataVolumeKind } from '#shared/api/cdi/data-volume.ts';
import { findCondition } from '#shared/api/conditions.ts';
import { remove } from '#shared/backends/actions.ts';
import type { Plan, PlanContext } from '#shared/backends/backend.ts';
import { type CdiSeen, runningPhases } from '#shared/backends/cdi/seen.ts';
import type { Image, ImageState } from '#shared/backends/image.ts';
import { failedState, isPast, isoTime, retryHint, waitingState } from '#shared/backends/state.ts';
import { inspectedOf } from '#shared/populate/volume.ts';
import { redact } from '#shared/runtime/redact.ts';

/** Trouble that CDI tells in its Running condition, and would try again for ever. */
const isTrouble = (reason: string): boolean => /Error|Failed|OOMKilled|BackOff|ImagePull|Unschedulable/.test(reason);

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

/** The state so far with what a DataVolume tells of its attempts. */
export const counted = (image: Image, dataVolume: DataVolume): ImageState => {
  const failed = dataVolume.status?.restartCount ?? 0;
  const { state } = image;
  // Ours say how many have begun; CDI counts restarts, each of which has. 0 is nothing said yet.
  const attempts = Math.max(state.attempts, dataVolume.status?.detail?.attempts || failed + 1);
  const newFailures = Math.max(0, failed - state.attemptsFailed);
  const trouble = failed > 0 ? troubleOf(dataVolume) : undefined;
  return {
    ...state,
    attempts,
    // Each attempt begins anew.
    progress: attempts > state.attempts ? 0 : state.progress,
    attemptsFailed: Math.max(state.attemptsFailed, failed),
    failures: state.failures + newFailures,
    lastFailure: trouble ?? state.lastFailure,
    inspection: state.inspection ?? inspectedOf(dataVolume),
    children: { ...state.children, volume: dataVolume.metadata.name },
  };
};

type Following = CdiSeen & { readonly dataVolume: DataVolume };

export const followDataVolume = (image: Image, seen: Following, context: PlanContext): Plan => {
  const { dataVolume } = seen;
  const state = counted(image, dataVolume);
  const { phase = '' } = dataVolume.status ?? {};
  if (phase === 'Failed') return { actions: [], state: endOf(state, dataVolume, 'not tried again') };
  if (state.attemptsFailed > image.retries) {
    // Left alone, it would be tried for ever.
    return { actions: remove(dataVolumeKind.type, dataVolume), state: endOf(state, dataVolume, 'the last') };
  }
  return runningPhases.includes(phase)
    ? followRunning(image, state, dataVolume, context)
    : stopIfStuck(dataVolume, waitingState(image, state, { phase: 'Pending', ...hindranceOf(seen) }, context));
};

const endOf = (state: ImageState, dataVolume: DataVolume, end: string): ImageState => {
  const { reason, message } = namedFaultOf(dataVolume) ?? troubleOf(dataVolume) ?? unnamed;
  return failedState(state, reason, `${redact(message)} (attempt ${state.attempts}, ${end}); ${retryHint}`);
};

const unnamed: Trouble = { reason: 'ImportFailed', message: 'the DataVolume failed and does not say why' };

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
