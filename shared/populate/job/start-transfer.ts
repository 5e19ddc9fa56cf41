// Starts transfer Jobs; the only way to create one. Called by the executor of plans, by downloads and by backups.
import { generateKeyPairSync, randomBytes } from 'node:crypto';
import { type Container, type EnvVar, type Job, jobs, type Secret, secrets } from '#shared/api/foreign/core.ts';
import { annotations, labels } from '#shared/api/names.ts';
import { keyOf } from '#shared/api/object.ts';
import type { KubeClient } from '#shared/clients/kube/client.ts';
import { advanceQueue } from '#shared/populate/queue/advance.ts';
import { readLimits } from '#shared/populate/queue/limits.ts';
import { sealSpec, secretFiles } from '#shared/transfer/sealed.ts';

// The secret part of a transfer Job: credentials of its spec and the private key that signs its reports. Both are in a Secret that the pods
// mount and the Job owns; the Job itself holds the rest, and the public key.

/** Mount path in the pod. */
const mountPath = '/transfer-secret';

interface SealedJob {
  /** Free of secrets. Suspended: its Secret has it as owner and can only be created after it. */
  readonly job: Job;
  /** By file name. */
  readonly files: Readonly<Record<string, string>>;
}

interface ReportKeys {
  /** PEM. */
  readonly privateKey: string;
  /** As in the annotation. */
  readonly publicKey: string;
}

/** Whether a URL may contain credentials. */
const mayHoldCredential = (text: string): boolean => {
  const url = URL.parse(text);
  return url !== null && url.username + url.password + url.search !== '';
};

const isOpen = ({ name, value = '' }: EnvVar): boolean => name !== 'BULLION_TRANSFER' && !mayHoldCredential(value);

const sealContainer = (container: Container, spec: string): Container => ({
  ...container,
  env: [
    { name: 'BULLION_TRANSFER', value: spec },
    ...(container.env ?? []).filter(isOpen),
    { name: 'BULLION_SECRET_DIR', value: mountPath },
  ],
  volumeMounts: [...(container.volumeMounts ?? []), { name: 'transfer-secret', mountPath, readOnly: true }],
});

/** `job` is the result of `buildTransferJob`. */
const sealJob = (job: Job, secretName: string, keys: ReportKeys): SealedJob => {
  const { template } = job.spec;
  const env = template.spec.containers.flatMap((container) => container.env ?? []);
  const { open, sealed } = sealSpec(JSON.parse(env.find(({ name }) => name === 'BULLION_TRANSFER')?.value ?? '{}'));
  const moved = env.filter((variable) => !isOpen(variable) && variable.name !== 'BULLION_TRANSFER');
  return {
    job: {
      ...job,
      metadata: {
        ...job.metadata,
        labels: { ...job.metadata.labels, [labels.starting]: 'true' },
        annotations: { ...job.metadata.annotations, [annotations.reportKey]: keys.publicKey },
      },
      spec: {
        ...job.spec,
        suspend: true,
        template: {
          ...template,
          spec: {
            ...template.spec,
            containers: template.spec.containers.map((container) => sealContainer(container, open)),
            volumes: [...(template.spec.volumes ?? []), { name: 'transfer-secret', secret: { secretName } }],
          },
        },
      },
    },
    files: {
      [secretFiles.sealed]: sealed,
      [secretFiles.reportKey]: keys.privateKey,
      ...Object.fromEntries(moved.map(({ name, value = '' }) => [name, value])),
    },
  };
};

/** `made` is the Job as created in the API. */
const buildJobSecret = (made: Job, name: string, files: SealedJob['files']): Secret => {
  const {
    namespace,
    labels: { [labels.starting]: _, ...marks } = {},
    annotations: notes = {},
    uid = '',
  } = made.metadata;
  const { [annotations.reportKey]: _key, ...ownerNotes } = notes;
  return {
    apiVersion: 'v1',
    kind: 'Secret',
    metadata: {
      name,
      ...(namespace === undefined ? {} : { namespace }),
      labels: { ...marks, [labels.role]: 'transfer-secret' },
      annotations: ownerNotes,
      ownerReferences: [{ apiVersion: 'batch/v1', kind: 'Job', name: made.metadata.name, uid, controller: true }],
    },
    type: 'bullion.dev/transfer',
    data: Object.fromEntries(Object.entries(files).map(([file, text]) => [file, Buffer.from(text).toString('base64')])),
  };
};

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
