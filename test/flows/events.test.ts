// Events alone cause every step. Other flows tick each second, which hides a step without an event.
import { type Server, createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { pods } from '#shared/api/foreign/core.ts';
import { anImage, deleteImage, followUntil, images, leftOvers, namespace, settle } from '#test/support/cluster.ts';
import { type DiskCluster, startDiskCluster } from '#test/support/disk-cluster.ts';

describe('a cluster without ticks', { timeout: 400_000 }, () => {
  let disk: DiskCluster;
  let cluster: DiskCluster['cluster'];
  let silent: Server;
  beforeAll(async () => {
    // Accepts requests and never answers.
    silent = createServer(() => undefined).listen(0, '127.0.0.1');
    await new Promise((listening) => silent.once('listening', listening));
    disk = await startDiskCluster({ cluster: { tickSeconds: 3600 } });
    ({ cluster } = disk);
  });
  afterAll(async () => {
    await disk?.close();
    silent.closeAllConnections();
    silent.close();
  });

  it('imports, and deletes temporary objects', async () => {
    expect((await settle(cluster.kube, anImage('whole', { source: { http: disk.url } }))).state).toBe('Available');
    await deleteImage(cluster.kube, 'whole');
    expect(await leftOvers(cluster.kube, cluster.dataDir)).toEqual([]);
  });

  it('deletes an image whose source has not answered yet', async () => {
    const http = `http://127.0.0.1:${(silent.address() as AddressInfo).port}/disk.raw`;
    await cluster.kube.create(images, anImage('mute', { source: { http } }));
    const phases = async () => (await cluster.kube.list(pods, { namespace })).items.map(({ status }) => status?.phase);
    await expect.poll(phases, { timeout: 150_000 }).toContain('Running');
    await deleteImage(cluster.kube, 'mute');
    expect(await leftOvers(cluster.kube, cluster.dataDir)).toEqual([]);
  });

  it('restarts a failed image', async () => {
    const http = new URL('absent.raw', disk.url).href;
    expect((await settle(cluster.kube, anImage('later', { source: { http } }))).state).toBe('Error');
    disk.files.offer('absent.raw', disk.raw);
    const retry = { metadata: { annotations: { 'bullion.dev/retry': '1' } } };
    await cluster.kube.mergePatch(images, { namespace, name: 'later' }, retry);
    const observed = await followUntil(cluster.kube, 'later', ({ state }) => state === 'Available');
    expect(observed.at(-1)?.failed).toBe(1);
    await deleteImage(cluster.kube, 'later');
  });
});
