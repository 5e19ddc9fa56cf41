import { describe, expect, it } from 'vitest';
import { type Job, configMaps, jobs, priorityClasses } from '#shared/api/foreign/core.ts';
import { annotations, labels, systemNamespace, transferQueue } from '#shared/api/names.ts';
import { keyOf } from '#shared/api/object.ts';
import type { KubeClient } from '#shared/clients/kube/client.ts';
import { startTransfer } from '#shared/populate/job/start-transfer.ts';
import { buildTransferJob } from '#shared/populate/job/transfer-job.ts';
import { advanceQueue } from '#shared/populate/queue/advance.ts';
import { imageRef, testSettings, testTime } from '#test/support/builders.ts';
import { type MemoryKube, createMemoryKube } from '#test/support/memory-kube.ts';

const cause = 'tick' as const;

interface Wish {
  readonly namespace?: string;
  readonly priorityClassName?: string;
}

/** A cluster, its limits, and its transfers by name. */
const given = (data?: Readonly<Record<string, string>>) => {
  const time = { now: testTime };
  const kube = createMemoryKube({ now: () => time.now });
  if (data !== undefined)
    kube.seed(configMaps, {
      apiVersion: 'v1',
      kind: 'ConfigMap',
      metadata: { namespace: systemNamespace, name: transferQueue },
      data,
    });
  const start = (name: string, { namespace = 'a', priorityClassName }: Wish = {}, client: KubeClient = kube) => {
    time.now += 1000;
    const owner = { ...imageRef, namespace, name, uid: name };
    const source = { type: 'http', url: 'https://images.example/disk.img' } as const;
    const pod = priorityClassName === undefined ? {} : { pod: { priorityClassName } };
    return startTransfer(client, buildTransferJob({ mode: 'import', owner, source, retries: 0, ...pod }, testSettings));
  };
  const pass = () => advanceQueue(kube, { now: time.now, cause });
  return { kube, time, start, pass };
};

const ownerOf = ({ metadata }: Job): string => metadata.name.replace('import-', '');
const startedIn = (kube: MemoryKube): readonly string[] =>
  kube
    .all(jobs)
    .filter(({ spec }) => spec.suspend !== true)
    .map(ownerOf)
    .toSorted();
const placesIn = (kube: MemoryKube) =>
  Object.fromEntries(kube.all(jobs).map((job) => [ownerOf(job), job.metadata.annotations?.[annotations.queuePlace]]));
const end = (kube: MemoryKube, name: string): void => {
  const job = kube.all(jobs).find((one) => ownerOf(one) === name)!;
  kube.edit(jobs, job.metadata, (one) => {
    one.status = { conditions: [{ type: 'Complete', status: 'True' }] };
  });
};

describe('transfers', () => {
  it('start at once where there are no limits, without a mark', async () => {
    const { kube, start } = given();
    for (const name of ['one', 'two']) await start(name);
    expect(startedIn(kube)).toEqual(['one', 'two']);
    expect(kube.all(jobs).map(({ metadata }) => metadata.labels?.[labels.queue])).toEqual([undefined, undefined]);
  });

  it('beyond a limit wait, and have their place', async () => {
    const { kube, start, pass } = given({ running: '1' });
    for (const name of ['one', 'two', 'three']) await start(name);
    expect(startedIn(kube)).toEqual(['one']);
    await pass();
    expect(placesIn(kube)).toEqual({ one: undefined, two: '1 of 2', three: '2 of 2' });
  });

  it('start when another has ended, which leaves the queue', async () => {
    const { kube, start, pass } = given({ running: '1' });
    for (const name of ['one', 'two', 'three']) await start(name);
    end(kube, 'one');
    await pass();
    expect(startedIn(kube)).toEqual(['one', 'two']);
    expect(placesIn(kube)).toEqual({ one: undefined, two: undefined, three: '1 of 1' });
    expect(kube.all(jobs).find((job) => ownerOf(job) === 'one')?.metadata.labels).not.toHaveProperty([labels.queue]);
  });

  it('of a priority class with a higher value go first', async () => {
    const { kube, start, pass } = given({ running: '1' });
    const urgent = {
      apiVersion: 'scheduling.k8s.io/v1',
      kind: 'PriorityClass',
      metadata: { name: 'urgent' },
      value: 7,
    };
    kube.seed(priorityClasses, urgent);
    for (const name of ['one', 'two']) await start(name);
    await start('three', { priorityClassName: 'urgent' });
    end(kube, 'one');
    await pass();
    expect(startedIn(kube)).toEqual(['one', 'three']);
  });

  it('all start once the limits are removed', async () => {
    const { kube, start, pass } = given({ running: '1' });
    for (const name of ['one', 'two', 'three']) await start(name);
    await kube.delete(configMaps, { namespace: systemNamespace, name: transferQueue });
    await pass();
    expect(startedIn(kube)).toEqual(['one', 'three', 'two']);
  });

  it.each([
    ['waiting', false],
    ['running', true],
    ['running', false],
  ])('take no turn of others by what their user writes: %s, suspended %s', async (state, suspend) => {
    const { kube, start, pass } = given({ running: '1' });
    await start('one');
    await start('two', { namespace: 'b' });
    const labelled = { metadata: { labels: { [labels.queue]: state } }, spec: { suspend } };
    await kube.mergePatch(jobs, { namespace: 'b', name: 'import-two' }, labelled);
    await start('three');
    end(kube, 'one');
    await pass();
    expect(startedIn(kube)).toContain('three');
  });

  it('are expected to start at the pace of those before them', async () => {
    const { kube, time, start, pass } = given({ running: '1' });
    const names = Array.from({ length: 16 }, (_, index) => `t${String(index).padStart(2, '0')}`);
    for (const name of names) await start(name);
    for (const name of names.slice(0, 4)) {
      time.now += 120_000;
      end(kube, name);
      await pass();
    }
    expect(placesIn(kube)).toMatchObject({
      t05: '1 of 11, about 2 min',
      t06: '2 of 11, about 4 min',
      t15: 'after the first 10, about 19 min',
    });
  });
});

describe('a pass over the queue', () => {
  /** Stops before the first Job that it would resume. */
  const interrupted = (kube: KubeClient): KubeClient => ({
    ...kube,
    mergePatch: async (type, key, patch, options) => {
      if ('spec' in patch) throw new Error('the function was killed');
      return kube.mergePatch(type, key, patch, options);
    },
  });

  it('that was interrupted is completed by the next one, and takes no room from it', async () => {
    const { kube, start, pass } = given({ running: '1' });
    await start('one');
    await start('two');
    end(kube, 'one');
    await expect(advanceQueue(interrupted(kube), { now: testTime, cause })).rejects.toThrow('killed');
    expect(startedIn(kube)).toEqual(['one']);
    // It would be the first now, if the other had not been admitted.
    kube.seed(priorityClasses, {
      apiVersion: 'scheduling.k8s.io/v1',
      kind: 'PriorityClass',
      metadata: { name: 'urgent' },
      value: 7,
    });
    await start('three', { priorityClassName: 'urgent' });
    await pass();
    expect(startedIn(kube)).toEqual(['one', 'two']);
  });

  it('that another one precedes decides again', async () => {
    const { kube, start, pass } = given({ running: '1' });
    for (const name of ['one', 'two', 'three']) await start(name);
    end(kube, 'one');
    let isFirst = true;
    const late: KubeClient = {
      ...kube,
      replace: async (type, object, options) => {
        if (isFirst) {
          isFirst = false;
          await pass();
          end(kube, 'two');
        }
        return kube.replace(type, object, options);
      },
    };
    await advanceQueue(late, { now: testTime, cause });
    expect(startedIn(kube)).toEqual(['one', 'three', 'two']);
  });

  it('leaves a Job alone whose start is not complete', async () => {
    const { kube, start, pass } = given({ running: '1' });
    const broken: KubeClient = {
      ...kube,
      mergePatch: () => Promise.reject(new Error('killed')),
      delete: () => Promise.reject(new Error('killed')),
    };
    await expect(start('one', {}, broken)).rejects.toThrow('killed');
    await pass();
    expect(kube.all(jobs).map((job) => [keyOf(job).name, job.spec.suspend])).toEqual([['import-one', true]]);
  });
});
