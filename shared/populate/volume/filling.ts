// A claim that is not filled yet: by its storage, which restores or clones, or by a Job. It is marked once its bytes are complete.
import { travellingLabels } from '#shared/api/cdi/names.ts';
import { type Job, type PersistentVolumeClaim, jobs, persistentVolumeClaims, pods } from '#shared/api/foreign/core.ts';
import { volumeSnapshots } from '#shared/api/foreign/snapshot.ts';
import {
  type Action,
  amend,
  create,
  ensure,
  patch,
  remove,
  removeJob,
  type Plan,
  type PlanContext,
} from '#shared/populate/actions.ts';
import { releaseSpool } from '#shared/populate/job/spooling.ts';
import type { ImageState } from '#shared/populate/filled.ts';
import { followTransfer } from '#shared/populate/job/following.ts';
import { afterPause, pausedBy, planPaused } from '#shared/populate/job/pausing.ts';
import { countAttempts, failedState, storageWaitingState, waitingState, leavingState } from '#shared/populate/state.ts';
import { type SucceededRun, type TransferRun, readTransfer } from '#shared/populate/job/attempts.ts';
import { type Population, guestLabels, populatedPatch } from '#shared/populate/population.ts';
import { needsBinder, planBinder } from '#shared/populate/volume/binding.ts';
import { arrivedAction } from '#shared/populate/volume/handover.ts';
import { planRetainedCopy } from '#shared/populate/volume/retained-copy.ts';
import { planLate } from '#shared/populate/volume/cloning.ts';
import { buildFillJob, keepSpoolOf } from '#shared/populate/volume/making.ts';
import { recordOf } from '#shared/populate/clone/strategy.ts';
import type { ObservedVolume } from '#shared/populate/volume/observed.ts';
import {
  buildPrime,
  handoverTo,
  isPrimed,
  planAround,
  planHandover,
  planProvisioning,
  selectedNode,
  targetOf,
} from '#shared/populate/volume/prime.ts';
import { planFilled } from '#shared/populate/volume/snapshotting.ts';
import { cloneOf, fetchReasonOf, isHeldBack, rest, restForConsumer, unplaced } from '#shared/populate/volume/state.ts';
import { type Volume, bytesOf } from '#shared/populate/volume/volume.ts';
import { redact } from '#shared/runtime/redact.ts';

type Filling = ObservedVolume & { readonly claim: PersistentVolumeClaim };

export const planFilling = (volume: Volume, observed: Filling, context: PlanContext): Plan => {
  if (isUnplaced(observed)) return planUnplaced(volume, observed);
  const known = { ...volume, state: stateWith(volume, observed.claim) };
  const record = recordOf(observed.claim);
  const isFilledByStorage = record !== undefined && (record.strategy !== 'copy' || record.volume !== undefined);
  if (isFilledByStorage) return planByStorage(known, observed, { population: record.population, context });
  return isPrimed(observed.claim) ? planPrimed(known, observed, context) : planByJob(known, observed, context);
};

const planPrimed = (volume: Volume, observed: Filling, context: PlanContext): Plan => {
  const { claim } = observed;
  const handover = handoverTo(claim);
  const hasArrived = claim.status?.phase === 'Bound' && claim.spec.volumeName === handover?.volume;
  return handover !== undefined && hasArrived
    ? fill(volume, observed, handover.population, context)
    : (planAround(volume, observed, context) ?? planByJob(volume, observed, context));
};

const isUnplaced = ({ claim }: Filling): boolean =>
  claim.spec.storageClassName === undefined && claim.status?.phase !== 'Bound';

/** Created while there was no class, so that it is empty. */
const planUnplaced = (volume: Volume, { claim, storageClass }: Filling): Plan => ({
  actions: storageClass === undefined || volume.claim.fills !== undefined ? [] : remove(persistentVolumeClaims, claim),
  state: rest(volume, unplaced).state,
});

/** A crash may have happened between creating the claim and recording it. */
const stateWith = ({ state }: Volume, claim: PersistentVolumeClaim): ImageState => ({
  ...state,
  clone: cloneOf(claim),
  fetchReason: fetchReasonOf(state, claim),
  storageClassName: claim.spec.storageClassName ?? state.storageClassName,
  children: { ...state.children, volume: claim.metadata.name },
});

const isWaitingForConsumer = ({ claim, storageClass }: Filling): boolean =>
  storageClass?.volumeBindingMode === 'WaitForFirstConsumer' &&
  claim.metadata.annotations?.[selectedNode] === undefined;

const planByStorage = (
  volume: Volume,
  observed: Filling,
  { population, context }: { readonly population: Population | undefined; readonly context: PlanContext },
): Plan => {
  const { claim, warnings: [warning] = [] } = observed;
  if (claim.status?.phase === 'Bound') return fill(volume, observed, population ?? nothingKnown, context);
  if (observed.handed === undefined && isWaitingForConsumer(observed))
    return needsBinder(volume, claim, observed.storageClass)
      ? planBinder(volume, observed, context)
      : restForConsumer(volume, claim);
  const step =
    warning === undefined
      ? { reason: 'Cloning', message: `waiting for claim ${claim.metadata.name} to be bound` }
      : {
          reason: warning.reason ?? 'Cloning',
          message: `claim ${claim.metadata.name}: ${redact(warning.message ?? '')}`,
        };
  const wait = { ...step, phase: 'Cloning', child: claim, isComplaining: warning !== undefined } as const;
  return { actions: [], state: storageWaitingState(volume, volume.state, wait, context) };
};

const nothingKnown: Population = { inspection: { format: 'raw', compression: 'none' }, digests: {} };

/** A copy by the storage has the allocation of its source. */
const marksOf = ({ claim: { filled, preallocated } }: Volume, claim: PersistentVolumeClaim) => {
  const isByJob = (recordOf(claim)?.strategy ?? 'copy') === 'copy';
  return { ...filled, ...(isByJob ? preallocated : {}) };
};

/**
 * Objects that a finished transfer keeps in use: a claim is not deleted while a pod refers to it, even one that has ended. If the transfer read
 * its own claim, its Job is removed. If it read the claim of another owner, or wrote to a prime claim, only the pods are: the name of the Job prevents
 * that a late pass copies into a disk that is in use by now.
 */
export const releaseSource = (
  volume: Volume,
  claim: PersistentVolumeClaim,
  { job, pods: workers, prime }: Pick<ObservedVolume, 'job' | 'pods' | 'prime'>,
): readonly Action[] => {
  const record = recordOf(claim);
  const left = remove(persistentVolumeClaims, prime);
  if (record?.from?.restored === true) return [...removeJob(job), ...left];
  const isKeeping = record?.strategy === 'copy' || prime !== undefined;
  const kept = isKeeping ? workers.flatMap((pod) => remove(pods, pod)) : [];
  return [...kept, ...left, ...releaseSpool({ ref: volume.ref, source: bytesOf(volume) }, job)];
};

const sourceLabels = (claim: PersistentVolumeClaim): Readonly<Record<string, string>> =>
  travellingLabels(recordOf(claim)?.labels);

/** The object gets the labels too if its clients read only the object. */
const notifyOwner = ({ labelled, ref, claim }: Volume, labels: Readonly<Record<string, string>>): readonly Action[] => {
  const isReported = Object.entries(labels).every(([name, value]) => claim.labels?.[name] === value);
  return labelled === undefined || isReported ? [] : [amend(labelled, ref, { metadata: { labels } })];
};

/** A snapshot that was taken for this clone only is removed in the same step: a usable volume is not examined again. */
const fill = (volume: Volume, observed: Filling, population: Population, context: PlanContext): Plan => {
  const fault = checksumFault(volume, population.digests);
  if (fault !== undefined) return { actions: [], state: failedState(volume.state, 'ChecksumMismatch', fault) };
  const { claim, spool, sourceSnapshot, restored, handed } = observed;
  const mark = populatedPatch(population, marksOf(volume, claim), sourceLabels(claim));
  const next = planFilled(volume, observed, population, context);
  return {
    ...next,
    actions: [
      ...(handed === undefined ? [] : [arrivedAction(handed)]),
      // Before the mark: once a claim is marked, its spool is not looked for any more.
      ...remove(persistentVolumeClaims, spool),
      ...remove(persistentVolumeClaims, restored),
      ...notifyOwner(volume, { ...guestLabels(population), ...sourceLabels(claim) }),
      patch(persistentVolumeClaims, claim, mark),
      ...remove(volumeSnapshots, sourceSnapshot),
      ...releaseSource(volume, claim, observed),
      ...next.actions,
    ],
  };
};

/** The worker compares digests while reading; this verifies that it did. */
const checksumFault = ({ source, checksum }: Volume, digests: Readonly<Record<string, string>>): string | undefined => {
  if (checksum === undefined || source?.type !== 'transfer') return undefined;
  const { algorithm, hex } = checksum;
  const found = digests[algorithm]?.toLowerCase();
  if (found === hex) return undefined;
  return found === undefined
    ? `the transfer did not report the ${algorithm} digest it was asked to check`
    : `${algorithm} of the file is ${found}, expected ${hex}`;
};

const fetchedPopulation = ({ inspection, digests, servedFrom }: SucceededRun['report']): Population => ({
  inspection,
  digests,
  ...(servedFrom === undefined ? {} : { servedFrom }),
});

const planByJob = (paused: Volume, observed: Filling, context: PlanContext): Plan => {
  const { claim, job, spool } = observed;
  const pause = planPaused(paused, observed, context);
  if (pause !== undefined) return pause;
  const volume = afterPause(paused);
  if (job === undefined) return planUnstarted(volume, observed, context);
  const leaving = [job, spool].find((child) => child?.metadata.deletionTimestamp !== undefined);
  if (leaving !== undefined) return { actions: removeJob(job), state: leavingState(volume, leaving, context) };
  const run = readTransfer(job, observed.pods, context.now);
  if (run.is !== 'succeeded') return planUnfinished(volume, { ...observed, job }, run, context);
  const known = recordOf(claim)?.population;
  const counted = { ...volume, state: countAttempts(volume.state, run) };
  const population = known ?? fetchedPopulation(run.report);
  const target = targetOf(observed) ?? claim;
  const fetched = { claim: target, population, pods: observed.pods };
  const keeping = planRetainedCopy(counted, observed.retainedCopy, fetched, context);
  if (keeping.is === 'under way') return keeping.plan;
  const filled =
    target === claim
      ? fill(counted, observed, population, context)
      : handOver(counted, { ...observed, prime: target }, population, context);
  return { ...filled, actions: [...keeping.actions, ...filled.actions] };
};

const handOver = (
  volume: Volume,
  complete: Parameters<typeof planHandover>[1],
  population: Population,
  context: PlanContext,
): Plan => {
  const fault = checksumFault(volume, population.digests);
  return fault === undefined
    ? planHandover(volume, complete, population, context)
    : { actions: [], state: failedState(volume.state, 'ChecksumMismatch', fault) };
};

const planUnstarted = (volume: Volume, observed: Filling, context: PlanContext): Plan => {
  const { claim, storageClass, singleflight } = observed;
  const target = targetOf(observed);
  if (isHeldBack(volume, storageClass) && target?.status?.phase !== 'Bound') {
    if (target !== undefined && target !== claim)
      return planProvisioning(volume, { ...observed, prime: target }, context);
    if (!isPrimed(claim) || isWaitingForConsumer(observed)) return restForConsumer(volume, claim);
    const prime = buildPrime(volume, claim);
    const { state } = planProvisioning(volume, { ...observed, prime }, context);
    return { actions: [ensure(persistentVolumeClaims, prime)], state };
  }
  if (singleflight === undefined || storageClass === undefined) return startJob(volume, observed, context);
  const start = (late: Volume, target: PersistentVolumeClaim) =>
    startJob(late, { ...observed, claim: target }, context);
  return planLate(volume, { ...observed, singleflight, storageClass }, start, context);
};

const planUnfinished = (
  volume: Volume,
  observed: Filling & { readonly job: Job },
  run: Exclude<TransferRun, { is: 'succeeded' }>,
  context: PlanContext,
): Plan => {
  const { job, warnings, spool } = observed;
  const paused = pausedBy(volume.state, run, context);
  if (paused !== undefined) return { actions: removeJob(job), state: paused };
  const followed = followTransfer(volume, { job, run, warnings, spool }, context);
  // A client deleted it: the next pod could not start.
  const kept = followed.state.phase === 'Failed' ? [] : keepSpoolOf(volume, { spool, target: observed.claim }, context);
  const listening = run.is === 'running' ? reportListening(volume, observed.claim) : [];
  return { ...followed, actions: [...kept, ...listening, ...followed.actions] };
};

/** Clients that read only the claim wait for these annotations before they send anything. */
const reportListening = ({ claim: { listening = {} } }: Volume, claim: PersistentVolumeClaim): readonly Action[] => {
  const { annotations = {} } = claim.metadata;
  const isReported = Object.entries(listening).every(([name, value]) => annotations[name] === value);
  return isReported ? [] : [patch(persistentVolumeClaims, claim, { metadata: { annotations: listening } })];
};

const startJob = (volume: Volume, observed: Filling, context: PlanContext): Plan => {
  const { claim, spool } = observed;
  const target = targetOf(observed);
  const prime = target === undefined ? [buildPrime(volume, claim)] : [];
  const job = buildFillJob(volume, claim, context.settings, target ?? prime[0]);
  const next = {
    ...volume.state,
    attempts: 0,
    attemptsFailed: 0,
    lastFailure: undefined,
    children: { ...volume.state.children, job: job.metadata.name },
  };
  const step = { phase: 'Pending', reason: 'Starting', message: 'the transfer is being started' } as const;
  return {
    actions: [
      ...prime.map((second) => ensure(persistentVolumeClaims, second)),
      ...keepSpoolOf(volume, { spool, target: claim }, context),
      create(jobs, job),
    ],
    state: waitingState(volume, next, step, context),
  };
};
