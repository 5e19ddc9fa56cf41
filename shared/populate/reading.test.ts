// What is read of children and classes: the snapshot class, the Events that matter, a claim that was labelled meanwhile.
import { describe, expect, it } from 'vitest';
import { storageProfiles } from '#shared/api/cdi/storage-profile.ts';
import { type Job, type Pod, kubeEvents, persistentVolumeClaims } from '#shared/api/foreign/core.ts';
import { volumeSnapshotClasses } from '#shared/api/foreign/snapshot.ts';
import { readMarked, readNewestWarnings, readSnapshotClass } from '#shared/populate/reading.ts';
import { populatedPatch, populationOf } from '#shared/populate/population.ts';
import { aJob, aPod, aPopulation, aSnapshotClass, aSuccess, aVolume, imageRef } from '#test/support/builders.ts';
import { createMemoryKube } from '#test/support/memory-kube.ts';

const driver = 'local.bullion.dev';

describe('the snapshot class of a volume', () => {
  it.each<[what: string, names: readonly string[], words: readonly (string | undefined)[], found: string | undefined]>([
    ['is undefined when its driver has none', [], [], undefined],
    ['is the only one of its driver', ['b'], [], 'b'],
    ['is the first of them by default', ['b', 'a'], [], 'a'],
    ['is the one in the status of its StorageProfile', ['b', 'a'], ['b'], 'b'],
    ['is the requested one in its StorageProfile, before the one in its status', ['c', 'b', 'a'], ['b', 'c'], 'c'],
    ['is not one of another driver', ['b', 'a'], ['other'], 'a'],
    ['is not a deleted one', ['b', 'a'], ['gone'], 'a'],
  ])('%s', async (_what, names, [told, asked], found) => {
    const kube = createMemoryKube();
    for (const name of names) kube.seed(volumeSnapshotClasses, aSnapshotClass(name, { driver }));
    kube.seed(volumeSnapshotClasses, aSnapshotClass('other', { driver: 'other.example' }));
    kube.seed(storageProfiles, {
      apiVersion: 'cdi.kubevirt.io/v1beta1',
      kind: 'StorageProfile',
      metadata: { name: 'fast' },
      status: told === undefined ? {} : { snapshotClass: told },
      ...(asked === undefined ? {} : { spec: { snapshotClass: asked } }),
    });
    expect(await readSnapshotClass(kube, driver, 'fast')).toBe(found);
  });
});

describe('the Events that a message quotes', () => {
  const at = (seconds: number): string => new Date(Date.UTC(2026, 0, 1, 0, 0, seconds)).toISOString();
  const scheduled = (seconds: number) => ({ type: 'PodScheduled', status: 'True', lastTransitionTime: at(seconds) });
  const child = (kind: string, status: object) => ({
    apiVersion: 'v1',
    kind,
    metadata: { name: 'import-1', namespace: 'default', uid: 'now', creationTimestamp: at(10) },
    status,
  });
  const event = (uid: string, seconds: number, over: object = {}) => ({
    apiVersion: 'v1',
    kind: 'Event',
    metadata: { name: `e-${uid}-${seconds}`, namespace: 'default', creationTimestamp: at(seconds) },
    involvedObject: { kind: 'Pod', name: 'import-1', uid },
    type: 'Warning' as const,
    reason: `At${seconds}`,
    ...over,
  });

  it.each<[what: string, status: object, events: readonly ReturnType<typeof event>[], reasons: readonly string[]]>([
    ['the newest complaint', { phase: 'Pending' }, [event('now', 11), event('now', 12)], ['At12']],
    ['none of another pod of that name', { phase: 'Pending' }, [event('before', 12)], []],
    ['none of before it was placed', { phase: 'Pending', conditions: [scheduled(20)] }, [event('now', 12)], []],
    ['one since it was placed', { phase: 'Pending', conditions: [scheduled(20)] }, [event('now', 21)], ['At21']],
    [
      'one that began before it was made what it is, and goes on',
      { phase: 'Pending', conditions: [scheduled(20)] },
      [event('now', 12, { lastTimestamp: at(30) })],
      ['At12'],
    ],
    [
      'one by the scheduler, which counts in series',
      { phase: 'Pending' },
      [event('now', 5, { lastTimestamp: null, series: { lastObservedTime: at(30) } })],
      ['At5'],
    ],
    ['none of an attempt that failed', { phase: 'Failed' }, [event('now', 12)], []],
    ['none of a claim that is bound', { phase: 'Bound' }, [event('now', 12)], []],
    ['none of a Job that is over', { conditions: [{ type: 'Failed', status: 'True' }] }, [event('now', 12)], []],
  ])('%s', async (_what, status, events, reasons) => {
    const kube = createMemoryKube();
    for (const one of events) kube.seed(kubeEvents, one as never);
    const warnings = await readNewestWarnings(kube, [child('Pod', status)]);
    expect(warnings.map(({ reason }) => reason)).toEqual(reasons);
  });
});

describe('the claim that a Job fills', () => {
  const job = aJob('import', { succeeded: 1, conditions: [{ type: 'Complete', status: 'True' }] });
  const pod = aPod(job, 'a', 'Succeeded', { report: aSuccess() });

  it.each<[what: string, of: Job, workers: readonly Pod[], isMarked: boolean]>([
    ['is read again where the pod that told of its end is gone', job, [], true],
    ['is as it was read while that pod is there', job, [pod], false],
    ['is as it was read while the Job runs', aJob('import', { active: 1 }), [], false],
  ])('%s', async (_what, of, workers, isMarked) => {
    const kube = createMemoryKube();
    const claim = kube.seed(persistentVolumeClaims, aVolume());
    const mark = populatedPatch(aPopulation, {});
    await kube.mergePatch(persistentVolumeClaims, claim.metadata, mark);
    const read = await readMarked(kube, imageRef, { claim, job: of, workers });
    expect(populationOf(read) !== undefined).toBe(isMarked);
  });
});
