// The claim that holds an upload until it is a disk: created before the Job that fills it, removed before the disk becomes usable.
import { type Job, type PersistentVolumeClaim, persistentVolumeClaims } from '#shared/api/foreign/core.ts';
import type { ObjectRef } from '#shared/api/object.ts';
import { type Action, create, removeJob, type Plan, type PlanContext } from '#shared/populate/actions.ts';
import { readOwn } from '#shared/populate/reading.ts';
import { failedState, isPast, isoTime } from '#shared/populate/state.ts';
import type { KubeClient } from '#shared/clients/kube/client.ts';
import { type Source, isSent } from '#shared/populate/source.ts';
import { buildSpool, spoolName } from '#shared/populate/job/spool.ts';
import type { Filled } from '#shared/populate/filled.ts';

/** An object that is filled by an upload. */
interface Uploaded {
  readonly ref: ObjectRef;
  readonly source: Source | undefined;
}

export const readSpool = async (kube: KubeClient, uploaded: Uploaded): Promise<PersistentVolumeClaim | undefined> =>
  isSent(uploaded.source)
    ? (await readOwn(kube, persistentVolumeClaims, uploaded.ref, spoolName(uploaded.ref))).own
    : undefined;

interface Spooled {
  /** Its observed claim. */
  readonly spool: PersistentVolumeClaim | undefined;
  /** The claim that is filled from it. */
  readonly target: PersistentVolumeClaim;
  /** Size of the file in bytes, if known. */
  readonly fileBytes?: number | undefined;
}

/** No action if the object is not an upload, or if the claim exists. */
export const keepSpool = (uploaded: Uploaded, spooled: Spooled, { settings }: PlanContext): readonly Action[] => {
  const { spool, target, fileBytes = 0 } = spooled;
  if (!isSent(uploaded.source) || spool !== undefined) return [];
  const overhead = settings.filesystemOverhead;
  return [create(persistentVolumeClaims, buildSpool(uploaded.ref, { target, fileBytes, overhead }))];
};

/**
 * Removes the Job of a finished upload after its report was recorded: its pods refer to the spool, and Kubernetes keeps a claim while any pod
 * refers to it, even one that has ended.
 */
export const releaseSpool = (uploaded: Uploaded, job: Job | undefined): readonly Action[] =>
  isSent(uploaded.source) ? removeJob(job) : [];

/** The volume is created when a client starts an upload, not before. A late upload restarts the image. */
export const awaitOffer = ({ state }: Filled, { now, settings }: PlanContext): Plan => {
  const known = state.reason === awaiting.reason ? state.deadline : undefined;
  const deadline = known ?? isoTime(now + settings.attemptSeconds * 1000);
  const fault = 'no file was sent in time: POST it to the upload action of this image, which starts it again';
  const next = isPast(deadline, now)
    ? failedState(state, 'UploadExpired', fault)
    : { ...state, ...awaiting, deadline, nextAttemptTime: undefined };
  return { actions: [], state: next };
};

const awaiting = {
  phase: 'Pending',
  reason: 'AwaitingUpload',
  message: 'waiting for the upload: POST the file to the upload action of this image',
} as const;
