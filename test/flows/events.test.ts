// Events alone bring every step about. Other flows tick each second, by which a step that nobody was told of is made up for unseen.
import { mkdtemp, rm } from 'node:fs/promises';
import { type Server, createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { writeBootDisk } from '#infra/local/demo/boot-disk.ts';
import { type FileServer, startFileServer } from '#infra/local/demo/file-server.ts';
import { pods } from '#shared/api/foreign/core.ts';
import {
  type TestCluster,
  anImage,
  deleteImage,
  followUntil,
  images,
  leftOvers,
  namespace,
  settle,
  startTestCluster,
} from '#test/support/cluster.ts';

const mib = 2 ** 20;

describe('a cluster that does not tick', { timeout: 120_000 }, () => {
  let dir: string;
  let cluster: TestCluster;
  let files: FileServer;
  let silent: Server;
  beforeAll(async () => {
    dir = await mkdtemp(join(tmpdir(), 'bullion-events-'));
    await writeBootDisk(join(dir, 'disk.raw'), { bytes: 16 * mib, dataBytes: 4 * mib });
    files = await startFileServer();
    // Takes requests and never answers.
    silent = createServer(() => undefined).listen(0, '127.0.0.1');
    await new Promise((listening) => silent.once('listening', listening));
    cluster = await startTestCluster({ tickSeconds: 3600 });
  });
  afterAll(async () => {
    await cluster.close();
    await files.close();
    silent.closeAllConnections();
    silent.close();
    await rm(dir, { recursive: true, force: true });
  });

  it('imports, and removes what it made', async () => {
    const http = files.offer('disk.raw', join(dir, 'disk.raw'));
    expect((await settle(cluster.kube, anImage('whole', { source: { http } }))).state).toBe('Available');
    await deleteImage(cluster.kube, 'whole');
    expect(await leftOvers(cluster.kube, cluster.dataDir)).toEqual([]);
  });

  it('removes an image whose source has not answered yet', async () => {
    const http = `http://127.0.0.1:${(silent.address() as AddressInfo).port}/disk.raw`;
    await cluster.kube.create(images, anImage('mute', { source: { http } }));
    const phases = async () => (await cluster.kube.list(pods, { namespace })).items.map(({ status }) => status?.phase);
    await expect.poll(phases, { timeout: 60_000 }).toContain('Running');
    await deleteImage(cluster.kube, 'mute');
    expect(await leftOvers(cluster.kube, cluster.dataDir)).toEqual([]);
  });

  it('starts a failed image again', async () => {
    const disk = join(dir, 'disk.raw');
    const http = new URL('absent.raw', files.offer('disk.raw', disk)).href;
    expect((await settle(cluster.kube, anImage('later', { source: { http } }))).state).toBe('Error');
    files.offer('absent.raw', disk);
    const retry = { metadata: { annotations: { 'bullion.dev/retry': '1' } } };
    await cluster.kube.mergePatch(images, { namespace, name: 'later' }, retry);
    const seen = await followUntil(cluster.kube, 'later', ({ state }) => state === 'Available');
    expect(seen.at(-1)?.failed).toBe(1);
    await deleteImage(cluster.kube, 'later');
  });
});
