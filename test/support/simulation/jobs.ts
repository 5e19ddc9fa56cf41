// The Job controller: one pod at a time, the next one after a delay, until one succeeds or too many have failed.
import { isDeepStrictEqual } from 'node:util';
import { type Job, type Pod, jobs, pods } from '#shared/api/foreign/core.ts';
import { backoffSeconds } from '#shared/populate/job/transfer-job.ts';
import type { MemoryKube } from '#test/support/memory-kube.ts';
import { type ClusterRecord, iso } from '#test/support/simulation/record.ts';

export const isOver = ({ status }: Pod): boolean => status?.phase === 'Failed' || status?.phase === 'Succeeded';

export const podsOf = (kube: MemoryKube, { metadata: { uid } }: Job): readonly Pod[] =>
  kube.all(pods).filter(({ metadata }) => metadata.ownerReferences?.some((owner) => owner.uid === uid) === true);

const endOf = ({ status }: Pod): number =>
  Date.parse(status?.containerStatuses?.[0]?.state?.terminated?.finishedAt ?? '');

const statusOf = (job: Job, own: readonly Pod[], time: string): NonNullable<Job['status']> => {
  const failed = own.filter(({ status }) => status?.phase === 'Failed').length;
  const condition = (type: 'Complete' | 'Failed', reason: string) => [
    { type, status: 'True' as const, reason, message: reason, lastTransitionTime: time },
  ];
  const running = {
    startTime: job.status?.startTime ?? time,
    active: own.some((pod) => !isOver(pod)) ? 1 : 0,
    ...(failed === 0 ? {} : { failed }),
  };
  if (own.some(({ status }) => status?.phase === 'Succeeded')) {
    return { ...running, succeeded: 1, conditions: condition('Complete', 'CompletionsReached') };
  }
  const isExhausted = failed > (job.spec.backoffLimit ?? 6);
  return isExhausted ? { ...running, conditions: condition('Failed', 'BackoffLimitExceeded') } : running;
};

const podOf = ({ metadata, spec }: Job, count: number): Pod => ({
  apiVersion: 'v1',
  kind: 'Pod',
  metadata: {
    name: `${metadata.name}-${count.toString(36).padStart(5, '0')}`,
    namespace: metadata.namespace!,
    ...(spec.template.metadata?.labels && { labels: spec.template.metadata.labels }),
    ownerReferences: [{ apiVersion: 'batch/v1', kind: 'Job', name: metadata.name, uid: metadata.uid! }],
  },
  spec: spec.template.spec,
  status: { phase: 'Pending' },
});

/** Steps one Job. */
export const createJobController = ({ kube, now, later }: ClusterRecord): ((job: Job) => void) => {
  let podCount = 0;
  return (job) => {
    if ((job.status?.conditions ?? []).length > 0 || job.spec.suspend === true) return;
    const own = podsOf(kube, job);
    const status = statusOf(job, own, iso(now()));
    if (!isDeepStrictEqual(status, job.status)) {
      kube.edit(jobs, job.metadata, (edited) => void Object.assign(edited, { status }));
    }
    if (status.active === 1 || status.conditions !== undefined) return;
    const ends = own.filter(({ status: { phase } = {} }) => phase === 'Failed').map(endOf);
    const due = Math.max(0, ...ends) + (ends.length === 0 ? 0 : backoffSeconds(ends.length) * 1000);
    if (due > now()) return later(due);
    podCount += 1;
    kube.seed(pods, podOf(job, podCount));
  };
};
