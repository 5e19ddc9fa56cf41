import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type FileServer, startFileServer } from '#infra/local/demo/file-server.ts';
import { diskOf } from '#infra/local/demo/import.ts';
import { proveIdentical } from '#infra/local/demo/prove.ts';
import {
  type PersistentVolumeClaim,
  jobs,
  kubeEvents,
  namespaces,
  persistentVolumeClaims,
} from '#shared/api/foreign/core.ts';
import { harvesterImageKind } from '#shared/api/harvester/image.ts';
import {
  type ImageStatus,
  anImage,
  deleteImage,
  followUntil,
  images,
  isOver,
  leftOvers,
  namespace,
  readyOf,
  run,
} from '#test/support/cluster.ts';
import { type DiskCluster, startDiskCluster } from '#test/support/disk-cluster.ts';
import { untilGone, untilStatus } from '#test/support/until.ts';

const mib = 2 ** 20;

describe('the life of an image', { timeout: 500_000 }, () => {
  let offered: DiskCluster;
  let raw: string;
  let url: string;
  /** The same without delays: for tests that need not observe it in progress. */
  let quickUrl: string;
  let quick: FileServer;
  let cluster: DiskCluster['cluster'];
  beforeAll(async () => {
    // Slow enough to be observed at every step: the status is written at most every two seconds.
    offered = await startDiskCluster({ disk: { bytes: 64 * mib, dataBytes: 8 * mib }, files: { bytesPerSecond: mib } });
    ({ raw, cluster } = offered);
    const qcow2 = join(offered.dir, 'disk.qcow2');
    await run('qemu-img', ['convert', '-f', 'raw', '-O', 'qcow2', raw, qcow2]);
    url = offered.files.offer('disk.qcow2', qcow2);
    quick = await startFileServer();
    quickUrl = quick.offer('disk.qcow2', qcow2);
  });
  afterAll(async () => {
    await offered?.close();
    await quick?.close();
  });

  it('shows sizes before the first byte, progress that never decreases, and ready only at the end', async () => {
    const name = 'watched';
    await cluster.kube.create(images, anImage(name, { source: { http: url } }));
    const observed = await followUntil(cluster.kube, name, isOver);
    const progress = observed.map((status) => status.progress ?? 0);
    expect(progress).toEqual(progress.toSorted((a, b) => a - b));
    const firstByte = observed.find(({ transfer }) => (transfer?.receivedBytes ?? 0) > 0);
    expect([firstByte?.virtualSize, firstByte?.size]).toEqual([64 * mib, observed.at(-1)?.size]);
    const early = observed
      .slice(0, -1)
      .filter((status) => readyOf(status)?.status === 'True' || status.progress === 100);
    expect(early).toEqual([]);
    expect(observed.at(-1)?.state).toBe('Available');
    expect(new Set(observed.map(({ phase }) => phase))).toContain('Downloading');
  });

  it('is recorded in Events', async () => {
    const { items } = await cluster.kube.list(kubeEvents, { namespace, fieldSelector: 'involvedObject.name=watched' });
    expect(items.map(({ reason }) => reason)).toContain('Ready');
  });

  const moments: readonly (readonly [string, (status: ImageStatus) => boolean, 'slow' | 'quick'])[] = [
    ['as soon as it is observed', () => true, 'slow'],
    ['while it downloads', ({ phase, progress = 0 }) => phase === 'Downloading' && progress > 0, 'slow'],
    ['when nearly done', ({ progress = 0 }) => progress > 60, 'slow'],
    ['once it is available', ({ state }) => state === 'Available', 'quick'],
  ];

  it.each(moments)('ends with the deletion of all its children: %s', async (_, when, pace) => {
    await deleteImage(cluster.kube, 'watched');
    const http = pace === 'quick' ? quickUrl : url;
    await cluster.kube.create(images, anImage('fleeting', { source: { http } }));
    // A state that was not observed on a busy machine is no reason to wait without limit.
    await followUntil(cluster.kube, 'fleeting', (status) => when(status) || isOver(status));
    await deleteImage(cluster.kube, 'fleeting');
    expect(await leftOvers(cluster.kube, cluster.dataDir)).toEqual([]);
  });

  it('ends with its namespace, even if its golden volume is protected', async () => {
    const home = 'passing';
    await cluster.kube.create(namespaces, { apiVersion: 'v1', kind: 'Namespace', metadata: { name: home } });
    const image = anImage('guest', { source: { http: quickUrl } });
    await cluster.kube.create(images, { ...image, metadata: { name: 'guest', namespace: home } });
    await untilStatus(cluster.kube, images, { namespace: home, name: 'guest' }, ({ state }) => state === 'Available');
    const [golden] = (await cluster.kube.list(persistentVolumeClaims, { namespace: home })).items;
    const { labels, annotations } = golden!.metadata;
    const copy = {
      ...golden!,
      metadata: { name: 'copy', namespace, labels, annotations },
      spec: { ...golden!.spec, volumeName: undefined },
    } as unknown as PersistentVolumeClaim;
    const made = await cluster.kube.create(persistentVolumeClaims, copy);
    expect(JSON.stringify(made.metadata)).not.toContain('"bullion.dev/');
    await cluster.kube.delete(persistentVolumeClaims, { namespace, name: 'copy' });
    await cluster.kube.delete(namespaces, { name: home });
    await untilGone(cluster.kube, namespaces, { name: home });
    expect(await leftOvers(cluster.kube, cluster.dataDir)).toEqual([]);
  });

  it('starts over when its Job or its volume is deleted', async () => {
    const name = 'robbed';
    await cluster.kube.create(images, anImage(name, { source: { http: url } }));
    const [observed] = (await followUntil(cluster.kube, name, ({ phase }) => phase === 'Downloading')).slice(-1);
    await cluster.kube.delete(jobs, { namespace, name: observed?.children?.job ?? '' }, { propagation: 'Background' });
    await cluster.kube.delete(persistentVolumeClaims, { namespace, name: observed?.children?.volume ?? '' });
    const end = (await followUntil(cluster.kube, name, isOver)).at(-1);
    expect(end?.state).toBe('Available');
    const disk = await diskOf(cluster, { namespace, name: end?.children?.volume ?? '' });
    await expect(
      proveIdentical(disk, { file: raw, format: 'raw', compression: 'none' }, offered.dir),
    ).resolves.toBeUndefined();
    await deleteImage(cluster.kube, name);
  });

  it('imports a Harvester image as well', async () => {
    const { type } = harvesterImageKind;
    await cluster.kube.create(type, {
      apiVersion: 'harvesterhci.io/v1beta1',
      kind: 'VirtualMachineImage',
      metadata: { name: 'harvested', namespace },
      spec: {
        displayName: 'harvested',
        sourceType: 'download',
        url: quickUrl,
        backend: 'csi',
        targetStorageClassName: 'local',
      },
    } as never);
    const imported = async () => {
      const image = (await cluster.kube.get(type, { namespace, name: 'harvested' })) as
        | { status?: { conditions?: { type: string; status: string }[] } }
        | undefined;
      return image?.status?.conditions?.find((condition) => condition.type === 'Imported')?.status;
    };
    await expect.poll(imported, { timeout: 150_000 }).toBe('True');
    await cluster.kube.delete(type, { namespace, name: 'harvested' });
    expect(await leftOvers(cluster.kube, cluster.dataDir)).toEqual([]);
  });
});
