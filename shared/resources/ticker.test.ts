// When a tick looks at everything, and what it asks for otherwise.
import { beforeEach, describe, expect, it } from 'vitest';
import { backends } from '#shared/backends/registry.ts';
import { type KindName, kinds } from '#shared/api/kinds.ts';
import { dataVolumeKind } from '#shared/api/cdi/data-volume.ts';
import type { ReconcileDeps } from '#shared/resources/deps.ts';
import { aDataVolume } from '#test/support/data-volumes.ts';
import { dataImportCronKind } from '#shared/api/cdi/data-import-cron.ts';
import { cdiAnnotations } from '#shared/api/cdi/names.ts';
import { jobs, persistentVolumeClaims } from '#shared/api/foreign/core.ts';
import { hyperCloudImageKind } from '#shared/api/hypercloud/image.ts';
import { apiVersionOf, type KubeObject } from '#shared/api/object.ts';
import type { Agenda } from '#shared/resources/agenda.ts';
import { isSweepDue } from '#shared/resources/agenda.ts';
import { reconcilers } from '#shared/resources/registry.ts';
import { createTicker, type Ticker } from '#shared/resources/ticker.ts';
import { silentLogger as log } from '#shared/runtime/log.ts';
import { Unavailable } from '#shared/runtime/errors.ts';
import { aGoldenCron, settledStatus } from '#test/bench/golden/crons.ts';
import { aHyperCloudImage, aGoodFile, testSettings, testTime } from '#test/support/builders.ts';
import { type MemoryKube, createMemoryKube } from '#test/support/memory-kube.ts';
import { nothingElse } from '#test/support/reconcile.ts';

const minute = 60_000;
const sweepMs = 10 * minute;

const anAgenda = (over: Partial<Agenda> = {}): Agenda => ({
  sweptAt: 0,
  tookMs: 1000,
  fingerprint: 'a false',
  unsettled: new Map([[reconcilers[0]!, []]]),
  nextPoll: Infinity,
  isMoved: false,
  ...over,
});

describe('a sweep is due', () => {
  const rows: readonly (readonly [string, Partial<Agenda>, number, string, boolean])[] = [
    ['at rest, before its time', {}, 9 * minute, 'a false', false],
    ['at rest, at its time', {}, 10 * minute, 'a false', true],
    ['after something was written', { isMoved: true }, minute, 'a false', true],
    ['after a Job has ended', {}, minute, 'a true', true],
    ['after a Job has begun', {}, minute, 'a false,b false', true],
    ['after something moved, but the last one took long', { isMoved: true, tookMs: 10_000 }, minute, 'a false', false],
    ['once it took a twentieth of the time', { isMoved: true, tookMs: 10_000 }, 200_000, 'a false', true],
    ['at its time, however long it takes', { tookMs: 10 * minute }, 10 * minute, 'a false', true],
    ['after the clock was put back', {}, -1, 'a false', true],
  ];
  it.each(rows)('%s: %#', (_, over, now, found, isDue) => {
    expect(isSweepDue(anAgenda(over), { now, fingerprint: found, sweepMs })).toBe(isDue);
  });

  it('at each tick if that is configured', () => {
    expect(isSweepDue(anAgenda(), { now: 0, fingerprint: 'a false', sweepMs: 0 })).toBe(true);
  });
});

/** Of every kind, a spec as a user writes it: the compiler asks for that of a new kind. */
const specs: Readonly<Record<KindName, object>> = {
  hyperCloudImage: { source: { http: 'https://images.example/a' }, pvc: {} },
  harvesterImage: { displayName: 'a', sourceType: 'download', url: 'https://images.example/a' },
  downloader: { imageName: 'a' },
  dataSource: { source: { pvc: { namespace: 'default', name: 'a' } } },
  dataImportCron: { schedule: '0 0 * * *', managedDataSource: 'a', template: { spec: {} } },
  goldenImagePolicy: { dataImportCrons: { names: ['a'] }, channels: [{ name: 'stable', dataSource: 'a' }] },
  virtualMachinePvc: { virtualMachineImage: { name: 'a' } },
  virtualMachineVolume: { virtualMachineImage: { name: 'a' } },
  volumeExport: { pvcName: 'a' },
  dataVolume: { source: { blank: {} }, storage: {} },
  storageProfile: {},
  tenantLimit: {},
};

describe('an object is looked at by each tick', () => {
  const rows = (Object.keys(specs) as KindName[]).map(
    (name) => [name, reconcilers.find(({ kind }) => kind === kinds[name])!] as const,
  );
  it.each(rows)('until a pass has come to it, and while it is deleted: %s', (name, reconciler) => {
    const { type } = reconciler.kind;
    const object = (metadata: object = {}) =>
      ({
        apiVersion: apiVersionOf(type),
        kind: type.kind,
        metadata: { namespace: 'default', name: 'a', uid: 'a', generation: 1, ...metadata },
        spec: specs[name],
      }) as KubeObject;
    expect(reconciler.isSettled(reconciler.read(object()), testTime)).toBe(false);
    expect(
      reconciler.isSettled(reconciler.read(object({ deletionTimestamp: new Date(testTime).toISOString() })), testTime),
    ).toBe(false);
  });
});

describe('a tick', () => {
  let kube: MemoryKube;
  let ticker: Ticker;
  let clock: number;
  beforeEach(() => {
    clock = testTime;
    kube = createMemoryKube({ now: () => clock });
    ticker = createTicker(sweepMs);
  });

  /** A minute later; its requests. */
  const tick = async (over: Partial<ReconcileDeps> = {}): Promise<readonly string[]> => {
    clock += minute;
    const before = kube.calls.length;
    const now = () => clock;
    await ticker({
      ...nothingElse,
      kube,
      backends,
      settings: testSettings,
      now,
      log,
      look: async () => aGoodFile,
      ...over,
    });
    return kube.calls.slice(before).map(({ verb, resource, name }) => [verb, resource, name ?? ''].join(' ').trim());
  };
  const quiet = ['list jobs', 'list persistentvolumeclaims'];

  /** Ticks until one makes only those requests. */
  const rest = async (over?: Partial<ReconcileDeps>): Promise<void> => {
    for (let round = 0; (await tick(over)).length > quiet.length; round += 1) expect(round).toBeLessThan(5);
  };

  it('asks whether anything moves, and nothing else, where all is settled', async () => {
    await rest();
    expect(await tick()).toEqual(quiet);
  });

  it('looks at what the sweep left unsettled, until it is settled', async () => {
    const image = kube.seed(hyperCloudImageKind.type, aHyperCloudImage());
    await tick();
    expect(kube.all(jobs)).toHaveLength(1);
    // Two sweeps: its own writes, and what came of them.
    await tick();
    await tick();
    expect(await tick()).toEqual(expect.arrayContaining([`get virtualmachineimages ${image.metadata.name}`]));
    expect(await tick()).not.toContain('list virtualmachineimages');
  });

  it('remembers nothing of what is left to a CDI', async () => {
    kube.seed(dataVolumeKind.type, aDataVolume('theirs', { source: { blank: {} }, storage: {} }));
    await rest({ cdi: async () => 'use' });
    expect(await tick({ cdi: async () => 'use' })).toEqual(quiet);
  });

  it('finds at the next sweep what was wrongly taken as settled', async () => {
    await rest();
    kube.seed(hyperCloudImageKind.type, aHyperCloudImage());
    const begun: number[] = [];
    for (let minutes = 1; minutes <= 10; minutes += 1) {
      await tick();
      begun.push(kube.all(jobs).length);
    }
    expect(begun[0]).toBe(0);
    expect(begun.at(-1)).toBe(1);
  });

  it('sweeps after one that failed', async () => {
    await rest();
    kube.failNext(
      { verb: 'list', resource: 'persistentvolumeclaims' },
      { error: new Unavailable('down'), when: 'before' },
    );
    await expect(tick()).rejects.toThrow('down');
    expect(await tick()).toContain('list virtualmachineimages');
  });

  it('sweeps after a Job has begun or ended', async () => {
    await rest();
    kube.seed(jobs, {
      apiVersion: 'batch/v1',
      kind: 'Job',
      metadata: { namespace: 'default', name: 'import-a', labels: { 'bullion.dev/owner-uid': 'a' } },
      spec: { template: { spec: { containers: [] } } },
    });
    expect(await tick()).toContain('list virtualmachineimages');
    await rest();
    kube.edit(jobs, { namespace: 'default', name: 'import-a' }, (job) => {
      job.status = { conditions: [{ type: 'Complete', status: 'True' }] };
    });
    expect(await tick()).toContain('list virtualmachineimages');
  });

  it('lists crons when one is due, and only then', async () => {
    const digest = `sha256:${'ab'.repeat(32)}`;
    const cron = aGoldenCron({ namespace: 'default', index: 1, url: 'docker://registry.example/disk:1', digest });
    const next = new Date(testTime + 8 * minute).toISOString();
    const annotations = { ...cron.metadata.annotations, [cdiAnnotations.nextCronTime]: next };
    const metadata = { ...cron.metadata, annotations, finalizers: ['bullion.dev/cron'] };
    const made = kube.seed(dataImportCronKind.type, { ...cron, metadata });
    kube.edit(dataImportCronKind.type, metadata, (object) =>
      Object.assign(object, { status: settledStatus(made, digest) }),
    );
    await rest();
    const asked: (readonly string[])[] = [];
    while (clock < testTime + 8 * minute) asked.push(await tick());
    expect(asked.at(-1)).toContain('list dataimportcrons');
    expect(asked.slice(0, -1).flat()).not.toContain('list dataimportcrons');
  });

  it('serves claims of others that ask for an upload, within a minute', async () => {
    await rest();
    kube.seed(persistentVolumeClaims, {
      apiVersion: 'v1',
      kind: 'PersistentVolumeClaim',
      metadata: { namespace: 'default', name: 'mine', annotations: { [cdiAnnotations.uploadTarget]: '' } },
      spec: { accessModes: ['ReadWriteOnce'], resources: { requests: { storage: '1Gi' } } },
    });
    expect(await tick()).toContain('create datavolumes mine');
  });
});
