import { mkdtemp, readFile, readdir, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { isObstacle, resolveVolumes } from '#local-cluster/controllers/jobs/mounts.ts';
import { type Pod, configMaps } from '#shared/api/foreign/core.ts';
import { createMemoryKube } from '#test/support/memory-kube.ts';

const namespace = 'default';
const pod: Pod = {
  apiVersion: 'v1',
  kind: 'Pod',
  metadata: { name: 'reader', namespace, uid: 'u1' },
  spec: { containers: [], volumes: [{ name: 'config', configMap: { name: 'settings' } }] },
};

let dir: string;
beforeEach(async () => void (dir = await mkdtemp(join(tmpdir(), 'bullion-mounts-'))));
afterEach(() => rm(dir, { recursive: true, force: true }));

it('updates the files of a config map atomically while a process reads them', async () => {
  const kube = createMemoryKube();
  const metadata = { name: 'settings', namespace };
  await kube.create(configMaps, {
    apiVersion: 'v1',
    kind: 'ConfigMap',
    metadata,
    data: { a: 'first', b: 'gone soon' },
  });
  const place = { kube, directory: undefined as never, nodeName: 'local', podDir: dir };
  const pathOf = async (): Promise<string> => {
    const volumes = await resolveVolumes(place, pod);
    return isObstacle(volumes) ? volumes.message : (volumes.get('config')?.path ?? '');
  };
  const path = await pathOf();

  const seen = new Set<string>();
  const reading = (async () => {
    for (let i = 0; i < 300; i += 1) seen.add(await readFile(join(path, 'a'), 'utf8').catch(() => 'missing'));
  })();
  for (let i = 0; i < 50; i += 1) await pathOf();
  await reading;
  expect([...seen]).toEqual(['first']);

  await kube.mergePatch(configMaps, metadata, { data: { a: 'second', b: null } });
  await pathOf();
  expect(await readFile(join(path, 'a'), 'utf8')).toBe('second');
  expect(await readdir(path)).toEqual(['a']);
});
