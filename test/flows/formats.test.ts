import { createHash } from 'node:crypto';
import { mkdtemp, readFile, rm, stat } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type FileServer, startFileServer } from '#infra/local/demo/file-server.ts';
import { diskOf } from '#infra/local/demo/import.ts';
import { proveIdentical } from '#infra/local/demo/prove.ts';
import {
  type TestCluster,
  anImage,
  deleteImage,
  images,
  leftOvers,
  namespace,
  settle,
  startTestCluster,
} from '#test/support/cluster.ts';
import { forms, makeDebianIso, makeLinuxDisk, publish } from '#test/support/disks.ts';
import { drawn } from '#test/support/random.ts';

describe('importing every published format', { timeout: 400_000 }, () => {
  let dir: string;
  let raw: string;
  let cluster: TestCluster;
  let server: FileServer;
  beforeAll(async () => {
    dir = await mkdtemp(join(tmpdir(), 'bullion-forms-'));
    raw = await makeLinuxDisk(dir);
    server = await startFileServer();
    cluster = await startTestCluster();
  });
  afterAll(async () => {
    await cluster.close();
    await server.close();
    await rm(dir, { recursive: true, force: true });
  });

  const sha256 = async (path: string): Promise<string> =>
    createHash('sha256')
      .update(await readFile(path))
      .digest('hex');

  const importAndCompare = async (name: string, file: string, spec: object = {}) => {
    const http = server.offer(basename(file), file);
    const status = await settle(cluster.kube, anImage(name, { source: { http }, ...spec }));
    expect([status.state, status.digests?.['sha256'], status.size]).toEqual([
      'Available',
      await sha256(file),
      (await stat(file)).size,
    ]);
    const disk = await diskOf(cluster, { namespace, name: status.children?.volume ?? '' });
    return { status, disk };
  };

  it.each(drawn(forms, 1 / 2))('%s becomes a volume with the same bytes', async (form) => {
    const { status, disk } = await importAndCompare(`form-${forms.indexOf(form)}`, await publish(raw, form));
    await expect(proveIdentical(disk, { file: raw, format: 'raw', compression: 'none' }, dir)).resolves.toBeUndefined();
    expect(status.virtualSize).toBe((await stat(raw)).size);
  });

  it('a Debian netboot ISO becomes a volume with the same bytes', async ({ skip }) => {
    const iso = await makeDebianIso(dir);
    if (iso === undefined) return skip('needs xorriso and debian-installer-12-netboot-amd64');
    const { status, disk } = await importAndCompare('iso', iso);
    expect(status.format).toBe('iso');
    await expect(proveIdentical(disk, { file: iso, format: 'raw', compression: 'none' }, dir)).resolves.toBeUndefined();
  });

  it.each([
    ['Filesystem', 'local'],
    ['Block', 'local-wffc'],
    ['Filesystem', 'local-plain'],
    ['Block', 'local-plain'],
  ])('fills a %s volume of class %s', async (volumeMode, storageClassName) => {
    const pvc = {
      volumeMode,
      accessModes: ['ReadWriteOnce'],
      storageClassName,
      resources: { requests: { storage: '128Mi' } },
    };
    const name = `in-${volumeMode}-${storageClassName}`.toLowerCase();
    const { disk } = await importAndCompare(name, await publish(raw, 'qcow2'), { storageClassName, pvc });
    await expect(proveIdentical(disk, { file: raw, format: 'raw', compression: 'none' }, dir)).resolves.toBeUndefined();
  });

  it('accepts a matching checksum, whatever its case', async () => {
    const file = await publish(raw, 'qcow2');
    const checksum = ` SHA256:${(await sha256(file)).toUpperCase()} `;
    const { status } = await importAndCompare('checked', file, { checksum });
    expect(status.state).toBe('Available');
  });

  it('leaves nothing behind when all are deleted', async () => {
    for await (const { metadata } of cluster.kube.listAll(images)) await deleteImage(cluster.kube, metadata.name);
    expect(await leftOvers(cluster.kube, cluster.dataDir)).toEqual([]);
  });
});
