import { describe, expect, it } from 'vitest';
import type { Job, Pod } from '#shared/api/foreign/core.ts';
import { type JobPlan, planJob } from '#local-cluster/controllers/jobs/job-plan.ts';

const start = Date.parse('2026-01-01T00:00:00Z');
const at = (seconds: number): string => new Date(start + seconds * 1000).toISOString();

const aJob = (spec: Partial<Job['spec']> = {}, status: Job['status'] = { startTime: at(0) }): Job => ({
  apiVersion: 'batch/v1',
  kind: 'Job',
  metadata: { name: 'job', namespace: 'default', uid: 'u' },
  spec: { template: { spec: { containers: [] } }, ...spec },
  status,
});

const aPod = (phase: 'Running' | 'Succeeded' | 'Failed', end = 0, disrupted = false): Pod => ({
  apiVersion: 'v1',
  kind: 'Pod',
  metadata: { name: `pod-${end}`, namespace: 'default' },
  spec: { containers: [] },
  status: {
    phase,
    conditions: disrupted ? [{ type: 'DisruptionTarget', status: 'True' }] : [],
    containerStatuses: [{ name: 'main', state: { terminated: { exitCode: 1, finishedAt: at(end) } } }],
  },
});

const plan = (job: Job, pods: readonly Pod[], seconds: number): JobPlan =>
  planJob(job, pods, { now: start + seconds * 1000, backOffFactor: 1 });
const typesOf = ({ status }: JobPlan): readonly string[] => (status.conditions ?? []).map(({ type }) => type);

describe('planJob', () => {
  it('starts a pod at once, and no second one while it runs', () => {
    expect(plan(aJob(), [], 0).createPod).toBe(true);
    expect(plan(aJob(), [aPod('Running')], 0).createPod).toBe(false);
  });

  it.each([
    [1, 10],
    [2, 20],
    [3, 40],
    [6, 320],
    [7, 360],
    [12, 360],
  ])('waits after failure %i for %i seconds', (count, seconds) => {
    const failures = Array.from({ length: count }, () => aPod('Failed', 100));
    const job = aJob({ backoffLimit: 20 });
    const early = plan(job, failures, 100 + seconds - 1);
    expect([early.createPod, early.dueMs]).toEqual([false, 1000]);
    expect(plan(job, failures, 100 + seconds).createPod).toBe(true);
  });

  it('fails only beyond the backoff limit, which is six by default', () => {
    const failures = (count: number) => Array.from({ length: count }, () => aPod('Failed'));
    expect(typesOf(plan(aJob(), failures(6), 1000))).toEqual([]);
    expect(typesOf(plan(aJob(), failures(7), 1000))).toEqual(['FailureTarget', 'Failed']);
    expect(typesOf(plan(aJob({ backoffLimit: 0 }), failures(1), 1000))).toEqual(['FailureTarget', 'Failed']);
  });

  it('counts failures whose pods were deleted', () => {
    const job = aJob({ backoffLimit: 1 }, { startTime: at(0), failed: 2 });
    expect(typesOf(plan(job, [], 1000))).toContain('Failed');
  });

  it('neither counts nor keeps a pod that was stopped by a shutdown of the cluster', () => {
    const disrupted = aPod('Failed', 0, true);
    const { createPod, deletePods, status } = plan(aJob({ backoffLimit: 0 }), [disrupted], 1);
    expect([createPod, deletePods, status.failed]).toEqual([true, [disrupted], 0]);
  });

  it('deletes pods at the deadline before it reports that the job failed', () => {
    const job = aJob({ activeDeadlineSeconds: 30 });
    expect(plan(job, [aPod('Running')], 20).dueMs).toBe(10_000);
    const running = plan(job, [aPod('Running')], 30);
    expect([typesOf(running), running.deletePods.length]).toEqual([['FailureTarget'], 1]);
    const stopped = plan(aJob({ activeDeadlineSeconds: 30 }, running.status), [], 31);
    expect(typesOf(stopped)).toEqual(['FailureTarget', 'Failed']);
    expect(stopped.status.conditions?.at(-1)?.reason).toBe('DeadlineExceeded');
  });

  it('is complete with the first success, whatever failed before', () => {
    const { status, createPod } = plan(aJob({ backoffLimit: 0 }), [aPod('Failed'), aPod('Succeeded')], 5);
    expect([status.conditions?.map(({ type }) => type), status.completionTime, createPod]).toEqual([
      ['SuccessCriteriaMet', 'Complete'],
      '2026-01-01T00:00:05Z',
      false,
    ]);
  });

  it('is deleted after its time to live, and not earlier', () => {
    const job = aJob(
      { ttlSecondsAfterFinished: 60 },
      { conditions: [{ type: 'Failed', status: 'True', lastTransitionTime: at(0) }] },
    );
    expect(plan(job, [], 59)).toMatchObject({ deleteJob: false, dueMs: 1000 });
    expect(plan(job, [], 60).deleteJob).toBe(true);
  });

  it('has no pod and no start time while suspended', () => {
    const job = aJob({ suspend: true, activeDeadlineSeconds: 1 });
    const { deletePods, status, createPod } = plan(job, [aPod('Running')], 100);
    expect([deletePods.length, status.startTime, createPod]).toEqual([1, undefined, false]);
    expect(typesOf({ status } as JobPlan)).toEqual(['Suspended']);
  });
});
