// The end of an export that failed or is cancelled: its data in the store is removed first. Pure; called by the plan.
import { type Job, type Pod, jobs, persistentVolumeClaims } from '#shared/api/foreign/core.ts';
import { volumeSnapshots } from '#shared/api/foreign/snapshot.ts';
import { type Action, create, remove, removeJob, type PlanContext } from '#shared/populate/actions.ts';
import { isFinal } from '#shared/populate/filled.ts';
import { isLeaving } from '#shared/populate/watched-child.ts';
import { failedState, terminatingState } from '#shared/populate/state.ts';
import { hasSentNothing, isFinished, readTransfer } from '#shared/populate/job/attempts.ts';
import type { PlannedStep } from '#shared/resources/reconciler.ts';
import { type Clearing, buildClearJob } from '#shared/resources/volume-export/children.ts';
import type { ExportDestination, ExportState, VolumeExport } from './rules.ts';
import type { ObservedExport } from '#shared/resources/volume-export/observed.ts';

/** The disk was written to while it was read: even a complete object in the store is wrong. */
export const tornReason = 'SourceChanged';

type Cleared =
  | { readonly is: 'done' }
  /** Not possible; remaining data may cause costs. */
  | { readonly is: 'given-up'; readonly because: string }
  | { readonly is: 'waiting'; readonly actions: readonly Action[]; readonly message: string };

type Going = VolumeExport & { readonly destination: ExportDestination };

/** A registry removes unfinished uploads by itself, and a claim is removed with the export. */
const hasRemains = ({ is }: ExportDestination, mode: Clearing): boolean =>
  is === 'store' || (is === 'registry' && mode === 'discard');

/** No Job may write any more before the store is cleared, or it would have to be cleared again. */
const clearStore = (resource: Going, observed: ObservedExport, mode: Clearing, context: PlanContext): Cleared => {
  const { job, clearJob, pods } = observed;
  if (job !== undefined && !isFinished(job)) return stopJob(job, context);
  const isUntouched = job === undefined ? resource.state.children?.job === undefined : hasSentNothing(job, pods);
  if (isUntouched || !hasRemains(resource.destination, mode)) return { is: 'done' };
  const place = resource.destination.is === 'store' ? 'object store' : 'registry';
  const message = `removing the unfinished upload from the ${place}`;
  if (clearJob === undefined) {
    const made = buildClearJob(resource, resource.destination, mode, context.settings);
    return { is: 'waiting', actions: [create(jobs, made)], message };
  }
  return isLeaving(clearJob) ? { is: 'waiting', actions: [], message } : endOf(clearJob, pods, context, message);
};

/** The pod of a lost node may never be gone. */
const stopJob = (job: Job, { now, settings }: PlanContext): Cleared => {
  const isStuck = Date.parse(job.metadata.deletionTimestamp ?? '') + settings.childSeconds * 1000 < now;
  return isStuck
    ? { is: 'given-up', because: `Job ${job.metadata.name} does not stop: check its pod and node` }
    : { is: 'waiting', actions: removeJob(job), message: 'stopping the transfer' };
};

const endOf = (clearJob: Job, pods: readonly Pod[], { now, settings }: PlanContext, message: string): Cleared => {
  const run = readTransfer(clearJob, pods, now);
  if (run.is === 'succeeded') return { is: 'done' };
  if (run.is === 'failed') return { is: 'given-up', because: run.fault.message };
  const isStuck = Date.parse(clearJob.metadata.creationTimestamp ?? '') + settings.childSeconds * 1000 < now;
  return isStuck
    ? { is: 'given-up', because: `Job ${clearJob.metadata.name} does not end` }
    : { is: 'waiting', actions: [], message };
};

/** The removal often fails for the same reason as the export, whose message says it already. */
const remainsText = (message: string, because: string): string => {
  const remains = '; parts of it may remain at the destination, because they could not be removed';
  return message.includes(because) ? `${remains} either` : `${remains}: ${because}`;
};

export const planFailing = (
  resource: Going,
  observed: ObservedExport,
  failing: NonNullable<ExportState['failing']>,
  context: PlanContext,
): PlannedStep<ExportState> => {
  const { reason, message } = failing;
  const cleared = clearStore(resource, observed, reason === tornReason ? 'discard' : 'abort', context);
  if (cleared.is === 'waiting') {
    const state: ExportState = {
      ...resource.state,
      phase: 'Exporting',
      reason: 'Aborting',
      message: `${cleared.message}, because it failed with ${reason}`,
      deadline: undefined,
      nextAttemptTime: undefined,
      transfer: undefined,
      failing,
    };
    return { actions: cleared.actions, state };
  }
  const left = cleared.is === 'done' ? '' : remainsText(message, cleared.because);
  const actions = [
    ...removeJob(observed.job),
    ...removeJob(cleared.is === 'done' ? undefined : observed.clearJob),
    ...remove(persistentVolumeClaims, observed.copy),
    ...remove(volumeSnapshots, observed.snapshot),
    ...remove(persistentVolumeClaims, observed.file),
  ];
  return { actions, state: { ...failedState(resource.state, reason, `${message}${left}`), failing: undefined } };
};

/** A complete object stays in the store; an incomplete one is removed. Owner references remove the rest. */
export const removeExport = (
  resource: VolumeExport,
  observed: ObservedExport,
  context: PlanContext,
): PlannedStep<ExportState> & { readonly removed: boolean } => {
  const { state, destination } = resource;
  if (destination === undefined || isFinal(state) || observed.isNamespaceLeaving === true)
    return { actions: [], state, removed: true };
  const cleared = clearStore({ ...resource, destination }, observed, 'abort', context);
  if (cleared.is !== 'waiting') return { actions: [], state, removed: true };
  return { actions: cleared.actions, state: terminatingState(state, 'Aborting', cleared.message), removed: false };
};
