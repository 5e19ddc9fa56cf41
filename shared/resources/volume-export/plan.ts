// Plans an export: read a snapshot of the disk, or a disk without a writer; observe the Job; report the result. Pure.
import { persistentVolumeClaims, pods, jobs } from '#shared/api/foreign/core.ts';
import type { Job, PersistentVolumeClaim, Pod } from '#shared/api/foreign/core.ts';
import { volumeSnapshots } from '#shared/api/foreign/snapshot.ts';
import { type Action, create, patch, remove, removeJob, type PlanContext } from '#shared/populate/actions.ts';
import { followTransfer } from '#shared/populate/job/following.ts';
import { isFinal, isRetryDue } from '#shared/populate/filled.ts';
import { withJob } from '#shared/populate/job/inspecting.ts';
import { isLeaving } from '#shared/populate/watched-child.ts';
import { spanOf } from '#shared/populate/clone/writer.ts';
import {
  countAttempts,
  failedState,
  restartedState,
  restartingState,
  storageWaitingState,
  takenState,
  usableState,
  waitingState,
} from '#shared/populate/state.ts';
import { type TransferRun, isFinished, readTransfer } from '#shared/populate/job/attempts.ts';
import { transferJobName } from '#shared/populate/job/transfer-job.ts';
import { buildSnapshot } from '#shared/populate/storage/snapshot.ts';
import type { PlannedStep } from '#shared/resources/reconciler.ts';
import {
  buildClearJob,
  buildCopy,
  buildExportJob,
  buildFileClaim,
  buildFilePod,
  exportName,
  fetchHint,
  readBy,
} from '#shared/resources/volume-export/children.ts';
import { planFailing, tornReason } from '#shared/resources/volume-export/failing.ts';
import { type ExportDestination, type ExportState, type VolumeExport, locationOf } from './rules.ts';
import { type ObservedExport, claimNameOf } from '#shared/resources/volume-export/observed.ts';
import type { ReadyOrigin } from '#shared/populate/clone/origin.ts';
import { rest } from '#shared/populate/volume/state.ts';

type ExportPlan = PlannedStep<ExportState>;

/** An export with a valid spec. */
type Going = VolumeExport & { readonly destination: ExportDestination };

/** Before a failure is reported, the data of the export is removed. */
export const planExport = (resource: VolumeExport, observed: ObservedExport, context: PlanContext): ExportPlan => {
  const { destination, state } = resource;
  if (state.phase === 'Available' || (isFinal(state) && !isRetryDue(resource)))
    return { actions: removeBegunAgain(resource, observed, context), state };
  if (destination === undefined) return { actions: [], state };
  const going = { ...resource, destination };
  if (isRetryDue(resource)) return planRestart(going, observed, context);
  if (state.failing !== undefined) return planFailing(going, observed, state.failing, context);
  const plan = advance(going, observed, context);
  if (plan.state.phase !== 'Failed') return plan;
  const { reason, message } = plan.state;
  const failing = { ...going, state: { ...plan.state, phase: 'Exporting' } } as const;
  return planFailing(failing, observed, { reason, message }, context);
};

const advance = (resource: Going, observed: ObservedExport, context: PlanContext): ExportPlan => {
  const [taken] = observed.foreign;
  if (taken !== undefined) return { actions: [], state: takenState(resource, taken, context) };
  const { job } = observed;
  if (job === undefined) return planStart(resource, observed, context);
  const state = { ...resource.state, from: readBy(resource, job) };
  return planFollow({ ...resource, state }, { ...observed, job }, context);
};

const wait = (resource: Going, step: Parameters<typeof waitingState>[2], context: PlanContext): ExportState =>
  waitingState(resource, resource.state, step, context);

const leaving = (resource: Going, name: string, context: PlanContext): ExportPlan => {
  const message = `${name} is being deleted; starting again once it is gone`;
  return { actions: [], state: wait(resource, { phase: 'Pending', reason: 'ChildDeleted', message }, context) };
};

const planStart = (resource: Going, observed: ObservedExport, context: PlanContext): ExportPlan => {
  const { origin, snapshot } = observed;
  if (origin === undefined) return { actions: [], state: resource.state };
  if (origin.is === 'waiting') return rest(resource, origin);
  const { snapshotClass, inUseBy, what } = origin.clone;
  if (snapshot !== undefined || snapshotClass !== undefined)
    return planSnapshot(resource, { ...observed, origin }, snapshotClass ?? '', context);
  if (inUseBy !== undefined) {
    const message = `pod ${inUseBy} may write to ${what}, and its driver supports no snapshots: stop the virtual machine; the export then starts automatically`;
    return rest(resource, { reason: 'SourceInUse', message });
  }
  return origin.claim === undefined
    ? { actions: [], state: resource.state }
    : startJob(resource, { ...observed, origin }, { claim: origin.claim, from: 'claim' }, context);
};

type Starting = ObservedExport & { readonly origin: ReadyOrigin };

/** The export has the content of one moment, even if the volume is written to meanwhile. */
const planSnapshot = (resource: Going, observed: Starting, className: string, context: PlanContext): ExportPlan => {
  const { origin, snapshot, copy } = observed;
  const name = exportName(resource);
  const next = { ...resource.state, children: { ...resource.state.children, snapshot: name } };
  const taking = { reason: 'Snapshotting', message: `taking a snapshot of ${origin.clone.what}` };
  const waitFor = (step: { readonly reason: string; readonly message: string }): ExportState =>
    storageWaitingState(
      resource,
      next,
      { ...step, phase: 'Snapshotting', child: snapshot, isComplaining: step.reason !== taking.reason },
      context,
    );
  if (snapshot === undefined) {
    const made = buildSnapshot(resource.ref, name, claimNameOf(resource.source), className);
    return { actions: [create(volumeSnapshots, made)], state: waitFor(taking) };
  }
  const gone = [snapshot, copy].find((child) => child !== undefined && isLeaving(child));
  if (gone !== undefined) return leaving(resource, `${gone.kind} ${gone.metadata.name}`, context);
  const error = snapshot.status?.error?.message;
  if (snapshot.status?.readyToUse !== true) {
    const message = `the snapshot of ${origin.clone.what} is in error: ${error ?? ''}`;
    return { actions: [], state: waitFor(error === undefined ? taking : { reason: 'SnapshotFailed', message }) };
  }
  const claim = copy ?? buildCopy(resource, origin, snapshot);
  const started = startJob({ ...resource, state: next }, observed, { claim, from: 'snapshot' }, context);
  const made = copy === undefined ? [create(persistentVolumeClaims, claim)] : [];
  return { ...started, actions: [...made, ...started.actions] };
};

interface Reading {
  readonly claim: PersistentVolumeClaim;
  readonly from: NonNullable<ExportState['from']>;
}

const startJob = (
  resource: Going,
  { origin, file }: Starting,
  { claim, from }: Reading,
  context: PlanContext,
): ExportPlan => {
  const { destination } = resource;
  if (file !== undefined && isLeaving(file)) return leaving(resource, `claim ${file.metadata.name}`, context);
  const job = buildExportJob(resource, { destination, claim, of: origin.claim ?? claim }, context.settings);
  const step = { phase: 'Pending', reason: 'Starting', message: 'the export is being started' } as const;
  const next = { ...withJob(resource.state, { job: job.metadata.name }), from };
  const target =
    destination.is === 'local' && file === undefined
      ? [create(persistentVolumeClaims, buildFileClaim(resource, destination, origin, context.settings))]
      : [];
  return { actions: [...target, create(jobs, job)], state: waitingState(resource, next, step, context) };
};

type Following = ObservedExport & { readonly job: Job };

const planFollow = (resource: Going, observed: Following, context: PlanContext): ExportPlan => {
  const { job, warnings } = observed;
  if (isLeaving(job)) return leaving(resource, `Job ${job.metadata.name}`, context);
  const run = readTransfer(job, observed.pods, context.now);
  if (run.is === 'succeeded') return planDone(resource, observed, run, context);
  return followTransfer(resource, { job, run, warnings }, context);
};

/** A pod that started before the end of the export and ended after its start may have written to the data that was read. */
const writerDuring = ({ writers = [], job }: Following, now: number): Pod | undefined => {
  const begin = Date.parse(job.status?.startTime ?? job.metadata.creationTimestamp ?? '');
  const completed = Date.parse(job.status?.completionTime ?? '');
  // The worker may have ended before its Job reports it.
  const end = Number.isNaN(completed) ? now : completed;
  return writers.find((pod) => {
    const span = spanOf(pod);
    return span !== undefined && span.begin <= end && (span.begin >= begin || span.end > begin);
  });
};

const planDone = (
  resource: Going,
  observed: Following,
  run: Extract<TransferRun, { is: 'succeeded' }>,
  context: PlanContext,
): ExportPlan => {
  const { destination } = resource;
  const counted = countAttempts(resource.state, run);
  const writer = writerDuring(observed, context.now);
  if (writer !== undefined) {
    const message = `pod ${writer.metadata.name} started to use the disk while it was exported, so the result may be inconsistent and was removed`;
    return { actions: [], state: failedState(counted, tornReason, message) };
  }
  const { inspection, digests, object } = run.report;
  const isLocal = destination.is === 'local';
  const where = isLocal ? `claim ${destination.claimName}` : locationOf(destination);
  const how = isLocal ? `; fetch it with: ${fetchHint(destination)}` : '';
  const state: ExportState = {
    ...usableState(resource, { ...counted, inspection, digests, lastFailure: undefined }),
    message: `exported to ${where}${how}`,
    object,
  };
  // Last: its pods keep the claims in use, even after they have ended. If it were gone before the state is written, the export would be created
  // again.
  return {
    actions: [...shownActions(resource, observed, context), ...removeReading(observed), ...removeJob(observed.job)],
    state,
  };
};

/**
 * A pass that read the export before its end was recorded finds no children any more, and starts again. Its Job may have begun an upload when it is
 * stopped: what is left of that is removed from the store, and the object stays.
 */
const removeBegunAgain = (
  resource: VolumeExport,
  observed: ObservedExport,
  { settings }: PlanContext,
): readonly Action[] => {
  const { destination, ref, state } = resource;
  const { job, clearJob, file } = observed;
  if (state.phase !== 'Available')
    return [...removeReading(observed), ...removeJob(job), ...remove(persistentVolumeClaims, file)];
  const isBegunAgain = job !== undefined && !isFinished(job) && !isLeaving(job);
  const mayHaveParts = isBegunAgain && clearJob === undefined && destination?.is === 'store';
  const isClearing = clearJob?.metadata.name === transferJobName('abort', ref) && !isFinished(clearJob);
  return [
    // Before the Job goes: nothing else shows that it is due.
    ...(mayHaveParts ? [create(jobs, buildClearJob(resource, destination, 'abort', settings))] : []),
    ...removeReading(observed),
    ...removeJob(job),
    ...removeJob(isClearing ? undefined : clearJob),
  ];
};

/** A local export can be fetched from a pod, and its claim is marked as complete. */
const shownActions = (
  resource: Going,
  { file, filePod }: ObservedExport,
  { settings }: PlanContext,
): readonly Action[] => {
  const { destination } = resource;
  if (destination.is !== 'local' || file === undefined) return [];
  return [
    patch(persistentVolumeClaims, file, { metadata: { annotations: { completed: 'yes' } } }),
    ...(filePod === undefined ? [create(pods, buildFilePod(resource, destination, settings))] : []),
  ];
};

/** Children that were created only for reading. */
const removeReading = ({ snapshot, copy }: ObservedExport): readonly Action[] => [
  ...remove(persistentVolumeClaims, copy),
  ...remove(volumeSnapshots, snapshot),
];

const planRestart = (resource: Going, observed: ObservedExport, context: PlanContext): ExportPlan => {
  const { job, clearJob, pods: workers, copy, snapshot, file, filePod } = observed;
  const left = [job, clearJob, ...workers, copy, snapshot, filePod, file].filter((child) => child !== undefined);
  if (left.length === 0) return advance({ ...resource, state: restartedState(resource) }, observed, context);
  const actions = [
    ...removeJob(job),
    ...removeJob(clearJob),
    ...removeReading(observed),
    ...remove(pods, filePod),
    ...remove(persistentVolumeClaims, file),
  ];
  return { actions, state: restartingState(resource, left, context) };
};
