// Starts transfer Jobs; the only way to create one. Called by the executor of plans, by downloads and by backups.
import { generateKeyPairSync, randomBytes } from 'node:crypto';
import { type Job, jobs, secrets } from '#shared/api/foreign/core.ts';
import { labels } from '#shared/api/names.ts';
import { keyOf } from '#shared/api/object.ts';
import type { KubeClient } from '#shared/clients/kube/client.ts';
import { advanceQueue } from '#shared/populate/queue/advance.ts';
import { readLimits } from '#shared/populate/queue/limits.ts';
import { type ReportKeys, type SealedJob, buildJobSecret, sealJob } from '#shared/populate/job/secret.ts';

/** Milliseconds after which a Job that is still being started was left behind by an interrupted pass. */
const abandonedMs = 60_000;

/** Synchronous, about 0.1 ms: a pass waits only for the API server, so that the simulation is deterministic. */
const createKeys = (): ReportKeys => {
  const { publicKey, privateKey } = generateKeyPairSync('ed25519');
  return {
    privateKey: privateKey.export({ type: 'pkcs8', format: 'pem' }).toString(),
    publicKey: publicKey.export({ type: 'spki', format: 'der' }).toString('base64'),
  };
};

const remove = (kube: KubeClient, job: Job): Promise<void> =>
  kube.delete(jobs, keyOf(job), { uid: job.metadata.uid ?? '', propagation: 'Foreground' });

/** Resumes a complete Job, or leaves it in the queue if there are limits that apply to it. Returns whether it waits. */
const release = async (kube: KubeClient, made: Job): Promise<boolean> => {
  const { uid } = made.metadata;
  const waits = made.metadata.labels?.[labels.queue] !== undefined && (await readLimits(kube)) !== undefined;
  await kube.mergePatch(jobs, keyOf(made), {
    metadata: { uid, labels: { [labels.starting]: null, ...(waits ? {} : { [labels.queue]: null }) } },
    ...(waits ? {} : { spec: { suspend: false } }),
  });
  return waits;
};

/** Gives a suspended Job its Secret, and releases it. Returns whether it waits. */
const complete = async (kube: KubeClient, made: Job, secretName: string, files: SealedJob['files']) => {
  try {
    await kube.create(secrets, buildJobSecret(made, secretName, files));
    return await release(kube, made);
  } catch (error) {
    // Best effort: the tick removes the rest.
    await remove(kube, made).catch(() => undefined);
    throw error;
  }
};

/**
 * Creates the Job suspended, then its Secret, then resumes the Job or has it wait for its turn. A crash in between leaves a Job without pods,
 * which is removed at once or by the next tick, together with its Secret. Throws Conflict if the name is taken.
 */
export const startTransfer = async (kube: KubeClient, job: Job): Promise<void> => {
  const secretName = `${job.metadata.name}-${randomBytes(4).toString('hex')}`;
  const { job: sealed, files } = sealJob(job, secretName, createKeys());
  const made = await kube.create(jobs, sealed);
  const waits = await complete(kube, made, secretName, files);
  // The Job is in the queue whatever becomes of this pass.
  if (waits) await advanceQueue(kube, { now: Date.parse(made.metadata.creationTimestamp ?? ''), cause: 'created' });
};

/** Removes Jobs whose start was interrupted; their owners start them again. Called by the tick. */
export const removeAbandoned = async (kube: KubeClient, now: number): Promise<void> => {
  for await (const job of kube.listAll(jobs, { labelSelector: labels.starting })) {
    const { creationTimestamp = '', deletionTimestamp } = job.metadata;
    if (deletionTimestamp === undefined && Date.parse(creationTimestamp) + abandonedMs <= now) await remove(kube, job);
  }
};
