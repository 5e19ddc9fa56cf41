// The same over an NFS export, which Harvester's own setting names: written by Jobs that mount it, read by the function that has it mounted.
import { mkdir, mkdtemp, readdir, rm, symlink } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { writeBootDisk } from '#infra/local/demo/boot-disk.ts';
import { type FileServer, startFileServer } from '#infra/local/demo/file-server.ts';
import { diskOf } from '#infra/local/demo/import.ts';
import { proveIdentical } from '#infra/local/demo/prove.ts';
import { harvesterSettings } from '#shared/api/foreign/backup.ts';
import { type ImageObject, imageTypes } from '#shared/backup/image.ts';
import type { ResourceType } from '#shared/api/object.ts';
import { type TestCluster, startTestCluster } from '#test/support/cluster.ts';

const mib = 2 ** 20;
const key = { namespace: 'default', name: 'jammy' };
const hypercloud = imageTypes[1] as ResourceType<ImageObject>;

describe('an image on an NFS export', { timeout: 900_000 }, () => {
  let dir: string;
  let raw: string;
  let share: string;
  let files: FileServer;
  let cluster: TestCluster;

  const start = async (): Promise<void> => {
    cluster = await startTestCluster({
      tickSeconds: 5,
      functionEnvironment: { BACKUP_NFS_FOLDER: join(dir, 'mounts') },
    });
    const value = JSON.stringify({ type: 'nfs', endpoint: `nfs://127.0.0.1:${share}`, refreshIntervalInSeconds: 0 });
    await cluster.kube.create(harvesterSettings, {
      apiVersion: 'harvesterhci.io/v1beta1',
      kind: 'Setting',
      metadata: { name: 'backup-target' },
      value,
    });
  };
  beforeAll(async () => {
    dir = await mkdtemp(join(tmpdir(), 'bullion-nfs-'));
    raw = join(dir, 'disk.raw');
    share = join(dir, 'export');
    await mkdir(share);
    await mkdir(join(dir, 'mounts'));
    // What `mount 127.0.0.1:/` would bring there.
    await symlink('/', join(dir, 'mounts', '127.0.0.1'));
    await writeBootDisk(raw, { bytes: 16 * mib, dataBytes: 4 * mib });
    files = await startFileServer();
    await start();
  });
  afterAll(async () => {
    await cluster?.close();
    await files?.close();
    await rm(dir, { recursive: true, force: true });
  });

  const until = async (conditions: readonly string[]): Promise<ImageObject> => {
    let seen: ImageObject | undefined;
    await expect
      .poll(
        async () => {
          seen = await cluster.kube.get(hypercloud, key);
          const found = seen?.status?.conditions ?? [];
          return conditions.every((type) => found.some((one) => one.type === type && one.status === 'True'))
            ? 'so'
            : found;
        },
        { timeout: 300_000, interval: 200 },
      )
      .toBe('so');
    return seen!;
  };

  it('is kept there, and restored by the next cluster', async () => {
    await cluster.kube.create(hypercloud, {
      apiVersion: 'hypercloud.tmaxanc.com/v1alpha1',
      kind: 'VirtualMachineImage',
      metadata: key,
      spec: { storageClassName: 'local', backup: true, source: { http: files.offer('disk.raw', raw) } },
    });
    await until(['DataReady', 'MetadataReady']);
    expect(await readdir(join(share, 'harvester', 'vmimages', 'default-jammy'))).toEqual(['vmimage-metadata.yaml']);
    await cluster.close();
    await files.close();
    await start();
    const restored = await until(['Ready', 'DataReady', 'MetadataReady']);
    const disk = await diskOf(cluster, { namespace: 'default', name: restored.status?.children?.volume ?? '' });
    await proveIdentical(disk, { file: raw, format: 'raw', compression: 'none' }, dir);
  });
});
