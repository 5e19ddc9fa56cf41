// Limits on transfers on a whole cluster: only here are events, ticks and Jobs of several functions together. One transfer runs at a time, the others
// say their place, the urgent one goes first, and each starts by the event that another has ended.
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { dataVolumeKind } from '#shared/api/cdi/data-volume.ts';
import { type Job, configMaps, jobs, priorityClasses } from '#shared/api/foreign/core.ts';
import { labels, systemNamespace, transferQueue } from '#shared/api/names.ts';
import { isFinished } from '#shared/populate/job/attempts.ts';
import { runBullion } from '#test/support/bullion.ts';
import { type TestCluster, namespace, startTestCluster } from '#test/support/cluster.ts';
import { aDataVolume, isOver } from '#test/support/data-volumes.ts';
import { noise } from '#test/support/disk.ts';
import { type Origin, fileAnswer, startOrigin } from '#test/support/origin.ts';
import { until, untilStatus } from '#test/support/until.ts';

const { type } = dataVolumeKind;

describe('a cluster that runs one transfer at a time', { timeout: 240_000 }, () => {
  let cluster: TestCluster;
  let origin: Origin;
  let release = (): void => {};
  /** Names of imports in the order in which they began, with how many ran at once at most. */
  const begun: string[] = [];
  let most = 0;
  const watching = new AbortController();

  const watch = async (): Promise<void> => {
    const running = new Set<string>();
    for await (const { type: change, object } of cluster.kube.watch(jobs, { namespace, signal: watching.signal })) {
      const job = object as Job;
      const { name } = job.metadata;
      if (!name.startsWith('import-')) continue;
      const owner = job.metadata.annotations?.['bullion.dev/owner-name'] ?? '';
      const isRunning = change !== 'DELETED' && job.spec.suspend !== true && !isFinished(job);
      if (isRunning && !begun.includes(owner)) begun.push(owner);
      if (isRunning) running.add(name);
      else running.delete(name);
      most = Math.max(most, running.size);
    }
  };
  const create = (name: string, priorityClassName?: string) =>
    cluster.kube.create(
      type,
      aDataVolume(name, {
        source: { http: { url: `${origin.url}/${name}.raw` } },
        storage: { storageClassName: 'local', resources: { requests: { storage: '1Mi' } } },
        ...(priorityClassName === undefined ? {} : { priorityClassName }),
      }),
    );
  const reasonOf = (name: string, pattern: RegExp) =>
    untilStatus(cluster.kube, type, { namespace, name }, ({ conditions = [] }) =>
      conditions.some(({ message = '' }) => pattern.test(message)),
    );

  beforeAll(async () => {
    const held = new Promise<void>((resolve) => (release = resolve));
    origin = await startOrigin((request) => ({
      ...fileAnswer(request, noise(request.path, 1024 * 1024)),
      ...(request.path === '/first.raw' && request.method === 'GET' ? { after: held } : {}),
    }));
    cluster = await startTestCluster();
    await cluster.kube.create(configMaps, {
      apiVersion: 'v1',
      kind: 'ConfigMap',
      metadata: { namespace: systemNamespace, name: transferQueue },
      data: { running: '1', weights: 'default=2' },
    });
    await cluster.kube.create(priorityClasses, {
      apiVersion: 'scheduling.k8s.io/v1',
      kind: 'PriorityClass',
      metadata: { name: 'urgent' },
      value: 1000,
    });
    void watch().catch(() => undefined);
  });
  afterAll(async () => {
    release();
    watching.abort();
    await cluster?.close();
    await origin?.close();
  });

  it('tells those that wait their place, and `bullion queue` lists them', async () => {
    await create('first');
    await until(cluster.kube, jobs, { namespace, name: await jobOf('first') }, (job) => job?.spec.suspend === false);
    await create('second');
    await reasonOf('second', /^waiting for other transfers: 1 of 1 in the queue/);
    await create('third', 'urgent');
    await reasonOf('third', /: 1 of 2 in the queue; ConfigMap bullion-system\/transfer-queue limits/);
    await reasonOf('second', /: 2 of 2 in the queue/);
    const { out } = await runBullion(['queue', '--kubeconfig', cluster.kubeconfigPath]);
    const rows = out.trimEnd().split('\n');
    expect(rows[0]).toMatch(/^NAMESPACE +OBJECT +TRANSFER +SOURCE +STATE +FOR/);
    expect(rows.slice(1)).toEqual([
      expect.stringMatching(/^default +DataVolume\/first +import +127\.0\.0\.1:\d+ +running /),
      expect.stringMatching(/^default +DataVolume\/third +import +127\.0\.0\.1:\d+ +waiting: 1 of 2/),
      expect.stringMatching(/^default +DataVolume\/second +import +127\.0\.0\.1:\d+ +waiting: 2 of 2/),
    ]);
  });

  const jobOf = async (name: string): Promise<string> =>
    `import-${(await cluster.kube.get(type, { namespace, name }))?.metadata.uid}`;

  it('fills them one after the other, the urgent one first', async () => {
    release();
    for (const name of ['first', 'second', 'third'])
      expect(await untilStatus(cluster.kube, type, { namespace, name }, isOver)).toMatchObject({ phase: 'Succeeded' });
    expect(begun).toEqual(['first', 'third', 'second']);
    expect(most).toBe(1);
    const left = await cluster.kube.list(jobs, { namespace, labelSelector: `${labels.queue}=waiting` });
    expect(left.items).toEqual([]);
  });
});
