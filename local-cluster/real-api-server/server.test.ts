import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { findAssets } from '#local-cluster/envtest/assets.ts';
import { startRealApiServer } from '#local-cluster/real-api-server/server.ts';
import { configMaps } from '#shared/api/foreign/core.ts';
import { createKubeClient, loadKubeConfig } from '#shared/clients/kube/create.ts';

const assetsDir = findAssets(process.env);
let dataDir = '';
beforeEach(async () => void (dataDir = await mkdtemp(join(tmpdir(), 'real-api-server-'))));
afterEach(() => rm(dataDir, { recursive: true, force: true }));

const isAlive = (pid: number): boolean => {
  try {
    return process.kill(pid, 0);
  } catch {
    return false;
  }
};

describe.skipIf(assetsDir === undefined)('the real API server', () => {
  const start = () => startRealApiServer({ assetsDir: assetsDir!, dataDir });

  test('keeps its data over a restart, and stops its processes', async () => {
    const first = await start();
    const object = { apiVersion: 'v1', kind: 'ConfigMap', metadata: { namespace: 'default', name: 'kept' } };
    await createKubeClient(loadKubeConfig(first.kubeconfigPath)).create(configMaps, object);
    const pids = await Promise.all(
      ['etcd.pid', 'kube-apiserver.pid'].map((name) => readFile(join(dataDir, name), 'utf8')),
    );
    await first.close();
    expect(pids.map((text) => isAlive(Number.parseInt(text, 10)))).toEqual([false, false]);

    const second = await start();
    const kube = createKubeClient(loadKubeConfig(second.kubeconfigPath));
    const found = await kube.get(configMaps, { namespace: 'default', name: 'kept' });
    await second.close();
    expect(found?.metadata.name).toBe('kept');
  });

  test('ends what a crashed run left behind', async () => {
    const crashed = await start();
    const pid = Number.parseInt(await readFile(join(dataDir, 'kube-apiserver.pid'), 'utf8'), 10);
    const next = await start();
    expect(isAlive(pid)).toBe(false);
    await next.close();
    await crashed.close();
  });

  test('a server that cannot start reports why', async () => {
    const extraFlags = ['--no-such-flag'];
    const failed = startRealApiServer({ assetsDir: assetsDir!, dataDir, durable: false, extraFlags });
    await expect(failed).rejects.toThrow(/kube-apiserver exited .*unknown flag/s);
  });
});
