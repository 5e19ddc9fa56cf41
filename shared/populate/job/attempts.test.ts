// What a Job and its pods say about a transfer: pods that the cluster ended are no failed attempts.
import { describe, expect, it } from 'vitest';
import { type Pod, disruptionTarget } from '#shared/api/foreign/core.ts';
import { readSucceeded, readTransfer } from '#shared/populate/job/attempts.ts';
import { aFault, aJob, aPod, aSuccess } from '#test/support/builders.ts';

const now = Date.parse('2026-01-02T03:04:05Z');
const job = aJob('import');
const cancelled = aFault({ reason: 'Cancelled', message: 'the transfer was cancelled' });

/** As the kubelet leaves it: the worker reported that it was cancelled. */
const disrupted = (
  suffix: string,
  finishedAt: string,
  cause: Pick<NonNullable<Pod['status']>, 'message'> = {},
): Pod => {
  const pod = aPod(job, suffix, 'Failed', { exitCode: 1, report: cancelled, finishedAt });
  const condition = {
    type: disruptionTarget,
    status: 'True',
    reason: 'EvictionByEvictionAPI',
    message: 'Eviction API',
  } as const;
  return { ...pod, status: { ...pod.status, ...cause, conditions: [condition] } };
};
const failed = (suffix: string, finishedAt: string): Pod =>
  aPod(job, suffix, 'Failed', {
    exitCode: 1,
    report: aFault({ reason: 'SourceUnreachable', message: 'no route' }),
    finishedAt,
  });

describe('a pod that the cluster ended', () => {
  it('is not counted by Kubernetes, which starts another one at once', () => {
    expect(job.spec.podFailurePolicy?.rules).toEqual([
      { action: 'Ignore', onPodConditions: [{ type: 'DisruptionTarget', status: 'True' }] },
    ]);
  });

  it.each<[string, readonly Pod[], object]>([
    [
      'is waited for with the reason',
      [disrupted('a', '2026-01-02T03:04:00Z', { message: 'The node was low on resource: ephemeral-storage.' })],
      {
        is: 'waiting',
        attempts: 1,
        failures: 0,
        lastFault: undefined,
        hindrance: {
          reason: 'PodDisrupted',
          message: expect.stringMatching(/^the cluster ended transfer pod import-\S+-a: The node was low on resource/),
        },
      },
    ],
    [
      'is named by its condition where the pod has no message',
      [disrupted('a', '2026-01-02T03:04:00Z')],
      { is: 'waiting', hindrance: { message: expect.stringMatching(/: Eviction API$/) } },
    ],
    [
      'is no attempt beside those that failed',
      [failed('a', '2026-01-02T03:02:00Z'), disrupted('b', '2026-01-02T03:04:00Z')],
      { is: 'waiting', attempts: 2, failures: 1, lastFault: { reason: 'SourceUnreachable' } },
    ],
    [
      'does not shorten the delay after a later failure',
      [disrupted('a', '2026-01-02T03:02:00Z'), failed('b', '2026-01-02T03:04:00Z')],
      { is: 'backing-off', attempts: 1, failures: 1, nextAttempt: '2026-01-02T03:04:10.000Z' },
    ],
    [
      'is over once the next one runs',
      [disrupted('a', '2026-01-02T03:02:00Z'), aPod(job, 'b', 'Running')],
      { is: 'running', attempts: 1, failures: 0, pod: expect.stringMatching(/-b$/) },
    ],
    [
      'is forgotten once the next one has succeeded',
      [disrupted('a', '2026-01-02T03:02:00Z'), aPod(job, 'b', 'Succeeded', { report: aSuccess() })],
      { is: 'succeeded', attempts: 1, failures: 0 },
    ],
  ])('%s', (_what, pods, run) => {
    expect(readTransfer(job, pods, now)).toMatchObject(run);
  });

  it('is not counted where the Job is not read either', () => {
    const pods = [disrupted('a', '2026-01-02T03:02:00Z'), aPod(job, 'b', 'Succeeded', { report: aSuccess() })];
    expect(readSucceeded(job.metadata.name, pods)).toMatchObject({ attempts: 1, failures: 0 });
  });

  it('is a failed attempt where a kubelet that starts rejects it, with the reason of the kubelet', () => {
    const pod = aPod(job, 'a', 'Failed', { exitCode: 1, report: cancelled, finishedAt: '2026-01-02T03:04:00Z' });
    const message = 'Pod was rejected: The node had condition: [DiskPressure].';
    const rejected = { ...pod, status: { ...pod.status, reason: 'Evicted', message } };
    expect(readTransfer(job, [rejected], now)).toMatchObject({
      is: 'backing-off',
      failures: 1,
      lastFault: { reason: 'WorkerEvicted', message },
    });
  });

  it('is the cause of a Job that was made without that rule, when it was its last attempt', () => {
    const condition = { type: 'Failed', status: 'True', reason: 'BackoffLimitExceeded' } as const;
    const old = { ...job, status: { failed: 1, conditions: [condition] } };
    expect(readTransfer(old, [disrupted('a', '2026-01-02T03:04:00Z')], now)).toMatchObject({
      is: 'failed',
      fault: { reason: 'PodDisrupted', message: expect.stringContaining('Eviction API') },
    });
  });
});
