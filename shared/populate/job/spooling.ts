// The claim that keeps an upload until it is a disk: made before the Job that fills it, gone before the disk is called usable.
import { type Job, type PersistentVolumeClaim, persistentVolumeClaims } from '#shared/api/foreign/core.ts';
import type { ObjectRef } from '#shared/api/object.ts';
import { type Action, create, removeJob, type Plan, type PlanContext } from '#shared/populate/actions.ts';
import { readOwn } from '#shared/populate/reading.ts';
import { failedState, isPast, isoTime } from '#shared/populate/state.ts';
import type { KubeClient } from '#shared/clients/kube/client.ts';
import { type Source, isSent } from '#shared/populate/source.ts';
import { buildSpool, spoolName } from '#shared/populate/job/spool.ts';
import type { Filled } from '#shared/populate/filled.ts';

/** What is filled by hand. */
interface Uploaded {
  readonly ref: ObjectRef;
  readonly source: Source | undefined;
}

export const readSpool = async (kube: KubeClient, uploaded: Uploaded): Promise<PersistentVolumeClaim | undefined> =>
  isSent(uploaded.source)
    ? (await readOwn(kube, persistentVolumeClaims, uploaded.ref, spoolName(uploaded.ref))).own
    : undefined;

interface Spooled {
  /** What there is of it. */
  readonly spool: PersistentVolumeClaim | undefined;
  /** The claim that is filled from it. */
  readonly target: PersistentVolumeClaim;
  /** Bytes of the file, where they are known. */
  readonly fileBytes?: number | undefined;
}

/** Nothing for what nobody uploads into, and where it is there. */
export const keepSpool = (uploaded: Uploaded, spooled: Spooled, { settings }: PlanContext): readonly Action[] => {
  const { spool, target, fileBytes = 0 } = spooled;
  if (!isSent(uploaded.source) || spool !== undefined) return [];
  const overhead = settings.filesystemOverhead;
  return [create(persistentVolumeClaims, buildSpool(uploaded.ref, { target, fileBytes, overhead }))];
};

/**
 * The Job of an upload that has come to its end, once what it reported is recorded: its pods name the spool, and Kubernetes keeps a claim as
 * long as any pod names it, also one that has ended.
 */
export const releaseSpool = (uploaded: Uploaded, job: Job | undefined): readonly Action[] =>
  isSent(uploaded.source) ? removeJob(job) : [];

/** A volume is made for a file that comes, not for one that may. One that comes late starts the image again. */
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
