// Runs Jobs: one pod at a time until one succeeds, the backoff limit is exceeded or the deadline has passed. Completions and parallelism
// other than 1 are not supported.
import { randomBytes } from 'node:crypto';
import { isDeepStrictEqual } from 'node:util';
import { type Job, type Pod, jobs, pods } from '#shared/api/foreign/core.ts';
import { keyOf } from '#shared/api/object.ts';
import type { KubeClient } from '#shared/clients/kube/client.ts';
import { Denied } from '#shared/runtime/errors.ts';
import { type Controller, type ControllerContext, startController } from '#local-cluster/controllers/controller.ts';
import { createSay, type Say } from '#local-cluster/controllers/events.ts';
import { keyOfText, textOf } from '#local-cluster/controllers/informer.ts';
import { type JobPlan, type JobStatus, planJob } from '#local-cluster/controllers/jobs/job-plan.ts';

export interface JobOptions extends ControllerContext {
  readonly nodeName: string;
  /** Factor for the delays between attempts; default 1. */
  readonly backOffFactor?: number | undefined;
}

export const jobLabels = { uid: 'batch.kubernetes.io/controller-uid', name: 'batch.kubernetes.io/job-name' } as const;

interface Tools {
  readonly kube: KubeClient;
  readonly say: Say;
  readonly nodeName: string;
}

export const startJobController = (options: JobOptions): Controller => {
  const { kube, backOffFactor = 1 } = options;
  const tools: Tools = { ...options, say: createSay(kube, 'job-controller') };
  return startController(
    {
      ...options,
      name: 'jobs',
      reconcile: async (key) => {
        const job = await kube.get(jobs, keyOfText(key));
        if (job === undefined || job.metadata.deletionTimestamp !== undefined) return undefined;
        // Listed each time: a pod created a moment ago must not be missed, or there would be two.
        const plan = planJob(job, await podsOf(kube, job), { now: Date.now(), backOffFactor });
        await carryOut(tools, job, plan);
        return plan.dueMs;
      },
    },
    ({ watch }) => {
      watch(jobs, (job) => [textOf(job.metadata)]);
      watch(pods, (pod) => {
        const name = pod.metadata.labels?.[jobLabels.name];
        return name === undefined ? [] : [textOf({ namespace: pod.metadata.namespace, name })];
      });
    },
  );
};

const podsOf = async (kube: KubeClient, job: Job): Promise<readonly Pod[]> => {
  const labelSelector = `${jobLabels.uid}=${job.metadata.uid ?? ''}`;
  const { items } = await kube.list(pods, { namespace: job.metadata.namespace, labelSelector });
  return items;
};

/** The decision is written before anything new starts, so that a restart decides the same. */
const carryOut = async ({ kube, say, nodeName }: Tools, job: Job, plan: JobPlan): Promise<void> => {
  if (plan.deleteJob) {
    await kube.delete(jobs, keyOf(job), { uid: job.metadata.uid ?? '', propagation: 'Background' });
    return;
  }
  if (!isDeepStrictEqual(written(plan.status), written(job.status ?? {}))) {
    const { uid, resourceVersion } = job.metadata;
    const absent = { startTime: null, completionTime: null };
    const patch = { metadata: { uid, resourceVersion }, status: { ...absent, ...plan.status } };
    await kube.mergePatch(jobs, keyOf(job), patch, { subresource: 'status' });
    await tell(say, job, plan);
  }
  for (const pod of plan.deletePods) await kube.delete(pods, keyOf(pod), { uid: pod.metadata.uid ?? '' });
  if (!plan.createPod) return;
  const pod = await createPod(kube, say, job, nodeName);
  await say(job, { type: 'Normal', reason: 'SuccessfulCreate', message: `Created pod: ${pod.metadata.name}` });
};

/** A quota or a policy may reject it: that is recorded on the Job, and retried. */
const createPod = async (kube: KubeClient, say: Say, job: Job, nodeName: string): Promise<Pod> => {
  try {
    return await kube.create(pods, buildPod(job, nodeName));
  } catch (error) {
    if (error instanceof Denied)
      await say(job, { type: 'Warning', reason: 'FailedCreate', message: `Error creating: ${error.message}` });
    throw error;
  }
};

/** The API server omits counts of zero. */
const written = (status: JobStatus): object =>
  Object.fromEntries(Object.entries(status).filter(([, value]) => value !== 0 && value !== undefined));

const tell = async (say: Say, job: Job, plan: JobPlan): Promise<void> => {
  const known = new Set(job.status?.conditions?.map(({ type }) => type));
  const end = plan.status.conditions?.find(
    ({ type }) => (type === 'Complete' || type === 'Failed') && !known.has(type),
  );
  if (end?.type === 'Complete') await say(job, { type: 'Normal', reason: 'Completed', message: 'Job completed' });
  if (end?.type !== 'Failed') return;
  await say(job, { type: 'Warning', reason: end.reason ?? 'Failed', message: end.message ?? 'Job failed' });
};

const buildPod = (job: Job, nodeName: string): Pod => {
  const { name, namespace = 'default', uid = '' } = job.metadata;
  const { metadata, spec } = job.spec.template;
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: {
      name: `${name.slice(0, 57)}-${randomBytes(3).toString('hex').slice(0, 5)}`,
      namespace,
      labels: {
        ...metadata?.labels,
        [jobLabels.uid]: uid,
        [jobLabels.name]: name,
        'controller-uid': uid,
        'job-name': name,
      },
      ...(metadata?.annotations === undefined ? {} : { annotations: metadata.annotations }),
      ownerReferences: [{ apiVersion: 'batch/v1', kind: 'Job', name, uid, controller: true, blockOwnerDeletion: true }],
    },
    spec: { ...spec, nodeName },
  };
};
