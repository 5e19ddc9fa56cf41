// A volume that is not filled yet: keep its Job going, and mark the volume once the Job says that every byte is verified and flushed.
import { type Job, type PersistentVolumeClaim, jobs, persistentVolumeClaims } from '#shared/api/foreign/core.ts';
import { volumeSnapshots } from '#shared/api/foreign/snapshot.ts';
import { create, patch, remove, removeJob, type Plan, type PlanContext } from '#shared/populate/actions.ts';
import { countAttempts, failedState, storageWaitingState, waitingState } from '#shared/populate/state.ts';
import { followTransfer } from '#shared/populate/job/following.ts';
import { buildImportJob } from '#shared/backends/csi/manifests.ts';
import { keepSpool, releaseSpool } from '#shared/populate/job/spooling.ts';
import type { ObservedCsi } from '#shared/backends/csi/observed.ts';
import { planSnapshot } from '#shared/backends/csi/snapshotting.ts';
import { type CloneRecord, recordOf } from '#shared/populate/clone/strategy.ts';
import { type TransferRun, readTransfer } from '#shared/populate/job/attempts.ts';
import { type Population, populatedPatch } from '#shared/populate/population.ts';
import { redact } from '#shared/runtime/redact.ts';
import type { Image } from '#shared/backends/image.ts';

type Filling = ObservedCsi & { readonly volume: PersistentVolumeClaim };

export const planFilling = (image: Image, observed: Filling, context: PlanContext): Plan => {
  const { volume, importJob: job, spool, warnings } = observed;
  const leaving = [volume, job, spool].find((child) => child?.metadata.deletionTimestamp !== undefined);
  if (leaving !== undefined)
    return planLeaving(image, { what: `${leaving.kind} ${leaving.metadata.name}`, job }, context);
  const record = recordOf(volume);
  if (record !== undefined && record.strategy !== 'copy') return planByStorage(image, observed, record, context);
  if (job === undefined) return planJob(image, observed, context);
  const run = readTransfer(job, observed.pods, context.now);
  if (run.is === 'succeeded') return planSucceeded(image, observed, run, context);
  const followed = followTransfer(image, { job, run, warnings, spool }, context);
  // Somebody took it away: the next pod could not start.
  const kept = followed.state.phase === 'Failed' ? [] : keepSpool(image, { spool, target: volume }, context);
  return { ...followed, actions: [...kept, ...followed.actions] };
};

interface Leaving {
  /** `Job import-1` */
  readonly what: string;
  readonly job: Job | undefined;
}

/** A pod that waits for a volume on its way out is what keeps it: neither would ever come to an end. */
const planLeaving = (image: Image, { what, job }: Leaving, context: PlanContext): Plan => {
  const message = `${what} is being deleted; starting again once it is gone`;
  return {
    actions: removeJob(job),
    state: waitingState(image, image.state, { phase: 'Pending', reason: 'ChildDeleted', message }, context),
  };
};

/** The storage copies what another volume holds. */
const planByStorage = (image: Image, observed: Filling, { population }: CloneRecord, context: PlanContext): Plan => {
  const { volume, warnings: [warning] = [] } = observed;
  if (volume.status?.phase === 'Bound') return fill(image, observed, population ?? nothingKnown, context);
  const { name } = volume.metadata;
  const step =
    warning === undefined
      ? { reason: 'Cloning', message: `waiting for claim ${name} to be bound` }
      : { reason: warning.reason ?? 'Cloning', message: `claim ${name}: ${redact(warning.message ?? '')}` };
  const wait = { ...step, phase: 'Cloning', child: volume, isComplaining: warning !== undefined } as const;
  return { actions: [], state: storageWaitingState(image, image.state, wait, context) };
};

const nothingKnown: Population = { inspection: { format: 'raw', compression: 'none' }, digests: {} };

/** A crash came between volume and Job, or somebody deleted the Job. */
const planJob = (image: Image, { volume, spool }: Filling, context: PlanContext): Plan => {
  const job = buildImportJob(image, volume, context.settings);
  const step = { phase: 'Pending', reason: 'Starting', message: 'the transfer is being started' } as const;
  const next = {
    ...image.state,
    attempts: 0,
    attemptsFailed: 0,
    lastFailure: undefined,
    children: { ...image.state.children, volume: volume.metadata.name, job: job.metadata.name },
    storageClassName: image.state.storageClassName ?? volume.spec.storageClassName,
  };
  const kept = keepSpool(image, { spool, target: volume, fileBytes: image.offered?.size }, context);
  return { actions: [...kept, create(jobs, job)], state: waitingState(image, next, step, context) };
};

const planSucceeded = (
  image: Image,
  observed: Filling,
  run: Extract<TransferRun, { is: 'succeeded' }>,
  context: PlanContext,
): Plan => {
  const { inspection, digests } = run.report;
  const counted = { ...image, state: countAttempts(image.state, run) };
  return fill(counted, observed, recordOf(observed.volume)?.population ?? { inspection, digests }, context);
};

/** A snapshot that was taken for this copy alone is no longer needed. */
const fill = (image: Image, observed: Filling, population: Population, context: PlanContext): Plan => {
  const fault = checksumFault(image, population.digests);
  if (fault !== undefined) return { actions: [], state: failedState(image.state, 'ChecksumMismatch', fault) };
  const mark = patch(persistentVolumeClaims, observed.volume, populatedPatch(population, image.volumeMarks.filled));
  const next = planSnapshot(image, observed, population, context);
  // Before the mark: of a volume that is marked nobody asks any more what it was made through.
  const before = remove(persistentVolumeClaims, observed.spool);
  return {
    ...next,
    actions: [
      ...before,
      mark,
      ...remove(volumeSnapshots, observed.sourceSnapshot),
      ...releaseSpool(image, observed.importJob),
      ...next.actions,
    ],
  };
};

/** The worker compares as it reads; this makes sure that it did, whoever's worker it was. */
const checksumFault = ({ checksum }: Image, digests: Readonly<Record<string, string>>): string | undefined => {
  if (checksum === undefined) return undefined;
  const { algorithm, hex } = checksum;
  const found = digests[algorithm]?.toLowerCase();
  if (found === hex) return undefined;
  return found === undefined
    ? `the transfer did not report the ${algorithm} digest it was asked to check`
    : `${algorithm} of the file is ${found}, expected ${hex}`;
};
