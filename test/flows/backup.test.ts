// An image outlives its cluster: kept in a bucket by one, lost with it, and restored by another.
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { writeBootDisk } from '#infra/local/demo/boot-disk.ts';
import { type FileServer, startFileServer } from '#infra/local/demo/file-server.ts';
import { diskOf } from '#infra/local/demo/import.ts';
import { proveIdentical } from '#infra/local/demo/prove.ts';
import { jobs, kubeEvents, pods } from '#shared/api/foreign/core.ts';
import type { ResourceType } from '#shared/api/object.ts';
import type { ImageObject } from '#shared/backup/image.ts';
import { imageTypes } from '#shared/backup/image.ts';
import {
  type BackupStore,
  backupCredentials,
  setTarget,
  startBackupStore,
  targetFields,
} from '#test/support/backup.ts';
import { type TestCluster, run, startTestCluster } from '#test/support/cluster.ts';

const mib = 2 ** 20;
const namespace = 'default';
const [harvester, hypercloud] = imageTypes as unknown as [ResourceType<ImageObject>, ResourceType<ImageObject>];

const conditionOf = (image: ImageObject | undefined, type: string) =>
  image?.status?.conditions?.find((condition) => condition.type === type);

describe('an image that outlives its cluster', { timeout: 300_000 }, () => {
  let dir: string;
  let raw: string;
  let files: FileServer;
  let url: string;
  let backup: BackupStore;
  let first: TestCluster;
  let second: TestCluster;
  beforeAll(async () => {
    dir = await mkdtemp(join(tmpdir(), 'bullion-backup-'));
    raw = join(dir, 'disk.raw');
    await writeBootDisk(raw, { bytes: 32 * mib, dataBytes: 6 * mib });
    const qcow2 = join(dir, 'disk.qcow2');
    await run('qemu-img', ['convert', '-f', 'raw', '-O', 'qcow2', raw, qcow2]);
    files = await startFileServer();
    url = files.offer('jammy.img', qcow2);
    backup = await startBackupStore(join(dir, 'store'));
    first = await startTestCluster({ tickSeconds: 3 });
    await setTarget(first.kube, targetFields(backup.server));
  });
  afterAll(async () => {
    await second?.close();
    await first?.close();
    await files?.close();
    await backup?.close();
    await rm(dir, { recursive: true, force: true });
  });

  const until = async (
    cluster: TestCluster,
    type: ResourceType<ImageObject>,
    name: string,
    isSo: (image: ImageObject) => boolean,
  ): Promise<ImageObject> => {
    let seen: ImageObject | undefined;
    await expect
      .poll(
        async () => {
          seen = await cluster.kube.get(type, { namespace, name });
          return seen !== undefined && isSo(seen) ? 'so' : seen?.status;
        },
        { timeout: 120_000, interval: 200 },
      )
      .toBe('so');
    return seen!;
  };
  const isKept = (image: ImageObject): boolean =>
    ['DataReady', 'MetadataReady'].every((type) => conditionOf(image, type)?.status === 'True');
  const isReady = (image: ImageObject): boolean => conditionOf(image, 'Ready')?.status === 'True';
  const prove = async (cluster: TestCluster, name: string) => {
    const disk = await diskOf(cluster, { namespace, name });
    await proveIdentical(disk, { file: raw, format: 'raw', compression: 'none' }, dir);
  };

  it('is kept with its bytes, before its metadata names them', async () => {
    await first.kube.create(hypercloud, {
      apiVersion: 'hypercloud.tmaxanc.com/v1alpha1',
      kind: 'VirtualMachineImage',
      metadata: { name: 'jammy', namespace },
      spec: { storageClassName: 'local', backup: true, source: { http: url } },
    });
    await first.kube.create(harvester, {
      apiVersion: 'harvesterhci.io/v1beta1',
      kind: 'VirtualMachineImage',
      metadata: { name: 'image-abc', namespace },
      spec: {
        backend: 'csi',
        displayName: 'Jammy Jellyfish',
        sourceType: 'download',
        url,
        targetStorageClassName: 'local',
        backup: true,
      },
    });
    const kept = await until(first, hypercloud, 'jammy', isKept);
    expect(kept.status?.backup).toMatchObject({
      object: 'harvester/vmimages/default-jammy/vmimage-metadata.yaml',
      disk: expect.stringMatching(/^[0-9a-f]{64}$/),
    });
    const other = await until(first, harvester, 'image-abc', isKept);
    // One disk, however many images share it.
    expect(other.status?.backup?.disk).toBe(kept.status?.backup?.disk);
    const objects = (await Array.fromAsync(backup.store.list(''))).map(({ key }) => key);
    expect(objects.filter((key) => key.includes('/disks/'))).toHaveLength(1);
    expect(objects).toContain('harvester/vmimages/default-image-abc/vmimage-metadata.yaml');
  });

  it('is restored in a cluster that knows nothing, byte for byte', async () => {
    const volume = (await first.kube.get(harvester, { namespace, name: 'image-abc' }))?.status?.children?.volume;
    await first.close();
    await files.close();
    second = await startTestCluster({ tickSeconds: 3 });
    await setTarget(second.kube, targetFields(backup.server));
    const restored = await until(second, hypercloud, 'jammy', (image) => isReady(image) && isKept(image));
    expect(restored.spec['storageClassName']).toBe('local');
    await prove(second, restored.status?.children?.volume ?? '');
    const other = await until(second, harvester, 'image-abc', (image) => isReady(image) && isKept(image));
    expect(other.spec).toMatchObject({ displayName: 'Jammy Jellyfish', sourceType: 'restore', backend: 'csi' });
    expect(other.status?.children?.volume).toBe(volume);
    await prove(second, volume ?? '');
  });

  it('shows its credentials to nobody', async () => {
    const kinds = [jobs, pods, kubeEvents, harvester, hypercloud] as readonly unknown[] as readonly ResourceType[];
    const lists = await Promise.all(kinds.map((type) => second.kube.list(type, { namespace })));
    const all = JSON.stringify(lists) + (await readFile(second.logFile, 'utf8'));
    expect(all).toContain('image restored');
    expect(all).not.toContain(backupCredentials.secretAccessKey);
  });
});
