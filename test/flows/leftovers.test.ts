// A real API server has processes of its own, which outlive a cluster that is killed.
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { findAssets } from '#local-cluster/envtest/assets.ts';
import { identityOf } from '#local-cluster/controllers/jobs/process.ts';
import { systemNamespace } from '#infra/local/manifests.ts';
import { namespaces } from '#shared/api/foreign/core.ts';
import { startClusterProcess } from '#test/support/cluster.ts';

const onReal = ['--apiserver', 'real'];

/** Identities of etcd and kube-apiserver while they run. */
const serversOf = async (dataDir: string): Promise<readonly string[]> => {
  const found: string[] = [];
  for (const name of ['etcd', 'kube-apiserver']) {
    const [pid = ''] = (await readFile(join(dataDir, 'api-server', `${name}.pid`), 'utf8').catch(() => '')).split('\n');
    const identity = pid === '' ? undefined : await identityOf(Number(pid));
    if (identity !== undefined) found.push(`${pid} ${identity}`);
  }
  return found;
};

const isRunning = async (server: string): Promise<boolean> => {
  const [pid, identity] = server.split(' ');
  return (await identityOf(Number(pid))) === identity;
};

describe.skipIf(findAssets(process.env) === undefined)('a cluster on a real API server', { timeout: 240_000 }, () => {
  it('stops processes left over from a killed run, and serves at the same address', async () => {
    const dataDir = await mkdtemp(join(tmpdir(), 'bullion-leftovers-'));
    onTestFinished(() => rm(dataDir, { recursive: true, force: true }));
    const first = await startClusterProcess(dataDir, onReal);
    await first.kill('SIGKILL');
    const left = await serversOf(dataDir);
    expect(left).toHaveLength(2);

    const second = await startClusterProcess(dataDir, onReal);
    expect(await Promise.all(left.map(isRunning))).toEqual([false, false]);
    expect(second.kube.server).toBe(first.kube.server);
    expect(await second.kube.get(namespaces, { name: systemNamespace })).toBeDefined();
    const running = await serversOf(dataDir);
    await second.kill('SIGKILL');

    const embedded = await startClusterProcess(dataDir, ['--apiserver', 'embedded']);
    expect(await Promise.all(running.map(isRunning))).toEqual([false, false]);
    await embedded.kill('SIGTERM');
  });
});
