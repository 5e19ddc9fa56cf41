// Images reconciled by Workers alone: `initialize` and `sidecar-sync` run under workerd, and there are no ticks. The broker sends the tokens of Triggers.
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { diskOf } from '#infra/local/demo/import.ts';
import { proveIdentical } from '#infra/local/demo/prove.ts';
import { dataImportCronKind } from '#shared/api/cdi/data-import-cron.ts';
import { dataSourceKind } from '#shared/api/cdi/data-source.ts';
import { kubeEvents } from '#shared/api/foreign/core.ts';
import { virtualMachineVolumeKind } from '#shared/api/hypercloud/volume.ts';
import {
  anImage,
  deleteImage,
  followUntil,
  isOver,
  images,
  leftOvers,
  namespace,
  readyOf,
} from '#test/support/cluster.ts';
import { type DiskCluster, startDiskCluster } from '#test/support/disk-cluster.ts';
import { type ReconcileWorkers, createDriverWorkers, reconcileWorkers } from '#test/support/reconcile-workers.ts';
import { conditionOf, createGoldenFlow } from '#test/support/golden.ts';

const never = 86_400;

describe('images reconciled by Workers', { timeout: 500_000 }, () => {
  let workers: ReconcileWorkers;
  let offered: DiskCluster;
  beforeAll(async () => {
    workers = await createDriverWorkers();
    offered = await startDiskCluster({ cluster: { tickSeconds: never, startEventing: workers.startEventing } });
  }, 120_000);
  afterAll(() => offered?.close());

  it('are imported, reported, cloned and deleted, byte for byte and without leftovers', async () => {
    const { cluster, raw, url } = offered;
    await cluster.kube.create(images, anImage('jammy', { source: { http: url } }));
    const observed = await followUntil(cluster.kube, 'jammy', isOver);
    const last = observed.at(-1);
    // With the message, which says why where it is not.
    expect([last?.state, last?.progress, readyOf(last)?.message]).toEqual(['Available', 100, expect.any(String)]);
    const disk = await diskOf(cluster, { namespace, name: last?.children?.volume ?? '' });
    await proveIdentical(disk, { file: raw, format: 'raw', compression: 'none' }, offered.dir);
    const { items } = await cluster.kube.list(kubeEvents, { namespace, fieldSelector: 'involvedObject.name=jammy' });
    expect(items.map(({ reason }) => reason)).toContain('Ready');
    const { type } = virtualMachineVolumeKind;
    await cluster.kube.create(type, {
      apiVersion: 'hypercloud.tmaxanc.com/v1alpha1',
      kind: 'VirtualMachineVolume',
      metadata: { name: 'root', namespace },
      spec: { virtualMachineImage: { name: 'jammy' } },
    });
    const state = async () => (await cluster.kube.get(type, { namespace, name: 'root' }))?.status?.state;
    await expect.poll(state, { timeout: 150_000 }).toBe('Available');
    await cluster.kube.delete(type, { namespace, name: 'root' });
    await deleteImage(cluster.kube, 'jammy');
    expect(await leftOvers(cluster.kube, cluster.dataDir)).toEqual([]);
    for (const name of reconcileWorkers) expect(workers.counts[name]).toBeGreaterThan(0);
  });

  it('follow a source that cron-tick polls: the Worker polls none, and receives the result', async () => {
    const { cluster, url } = offered;
    const flow = createGoldenFlow(cluster.kube, namespace);
    await flow.aCron('fedora', {
      template: { spec: { source: { http: { url } }, storage: { resources: { requests: { storage: '32Mi' } } } } },
    });
    await flow.until(dataImportCronKind.type, 'fedora', (cron) => conditionOf(cron, 'Progressing') !== undefined);
    expect((await flow.get(dataImportCronKind.type, 'fedora'))?.status?.lastPoll).toBeUndefined();
    cluster.eventing.tick();
    await flow.until(dataSourceKind.type, 'fedora', (source) => conditionOf(source, 'Ready')?.status === 'True');
  });

  it.each(reconcileWorkers)('accept requests only from Triggers: %s', async (name) => {
    const event = { 'ce-specversion': '1.0', 'ce-id': '1', 'ce-source': '/', 'ce-type': 'dev.knative.sources.ping' };
    expect(await workers.ask(name, event)).toBe(401);
    expect(await workers.ask(name, { ...event, authorization: 'Bearer a.b.c' })).toBe(401);
  });

  it('write no token to a log', () => {
    const lines = JSON.stringify(workers.logged());
    expect(lines).toContain('"worker":"sidecar-sync"');
    expect(lines).not.toContain('of-the-broker');
    expect(lines).not.toMatch(/eyJ[\w-]+\./);
  });
});
