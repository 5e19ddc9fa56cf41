// The secret input of a worker of a Job in an in-memory API: its complete spec, and the key that signs its progress.
import { buildTransferProgressed } from '#events/build.ts';
import type { EventOf, eventTypes } from '#events/catalogue.ts';
import { signEvent } from '#events/signature.ts';
import { type Job, jobs, pods, secretTexts, secrets } from '#shared/api/foreign/core.ts';
import type { ObjectRef } from '#shared/api/object.ts';
import type { TransferProgress } from '#shared/transfer/report.ts';
import { secretFiles, unsealSpec } from '#shared/transfer/sealed.ts';
import { aPod } from '#test/support/builders.ts';
import type { MemoryKube } from '#test/support/memory-kube.ts';

type ProgressEvent = EventOf<typeof eventTypes.transferProgressed>;

const source = 'bullion.dev/transfer-job';

/** Files of the Secret that a Job owns. */
export const secretOf = (
  kube: MemoryKube,
  { metadata: { uid } }: Job,
): Readonly<Record<string, string>> | undefined => {
  const secret = kube.all(secrets).find(({ metadata }) => metadata.ownerReferences?.[0]?.uid === uid);
  return secret && secretTexts(secret);
};

/** Unsigned if there is no Job of that pod, or if it has no Secret. */
export const signedProgress = (
  kube: MemoryKube,
  owner: ObjectRef,
  progress: TransferProgress,
  now?: Date,
): ProgressEvent => {
  const event = buildTransferProgressed({ owner, progress }, { source, ...(now === undefined ? {} : { now }) });
  const job = kube.all(jobs).find(({ metadata }) => progress.run.startsWith(`${metadata.name}-`));
  const key = job && secretOf(kube, job)?.[secretFiles.reportKey];
  return key === undefined ? event : signEvent(event, key);
};

/** The spec of a Job's worker, from the Job and its Secret. */
export const specOf = (kube: MemoryKube, job: Job): unknown => {
  const env = job.spec.template.spec.containers[0]?.env ?? [];
  const open = env.find(({ name }) => name === 'BULLION_TRANSFER')?.value ?? '{}';
  return JSON.parse(unsealSpec(open, secretOf(kube, job)?.[secretFiles.sealed]));
};

/** A running pod of the Job with that prefix. */
export const seedWorker = (kube: MemoryKube, run: string): void => {
  const job = kube.all(jobs).find(({ metadata }) => run.startsWith(`${metadata.name}-`))!;
  kube.seed(pods, aPod(job, run.slice(job.metadata.name.length + 1), 'Running'));
};
