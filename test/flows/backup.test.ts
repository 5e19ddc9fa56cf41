// An image outlives its cluster: backed up to a bucket by one cluster, lost with it, and restored by another.
import { copyFile, mkdir, mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { bootDisk, bootLine, writeBootDisk } from '#infra/local/demo/boot-disk.ts';
import { type FileServer, startFileServer } from '#infra/local/demo/file-server.ts';
import { diskOf } from '#infra/local/demo/import.ts';
import { proveIdentical } from '#infra/local/demo/prove.ts';
import { isTrue } from '#shared/api/conditions.ts';
import { dataVolumeKind } from '#shared/api/cdi/data-volume.ts';
import { backupBackingImages } from '#shared/api/foreign/backup.ts';
import { jobs, kubeEvents, namespaces, persistentVolumeClaims, pods, secrets } from '#shared/api/foreign/core.ts';
import { backingImages, longhornNamespace } from '#shared/api/foreign/longhorn.ts';
import type { ResourceType } from '#shared/api/object.ts';
import type { BackupImageObject } from '#shared/backup/image.ts';
import { imageTypes } from '#shared/backup/image.ts';
import {
  type BackupStore,
  backupCredentials,
  isBack,
  isKept,
  isReady,
  setTarget,
  startBackupStore,
  targetFields,
  targetSecret,
  untilImage,
} from '#test/support/backup.ts';
import { runBullion } from '#test/support/bullion.ts';
import { type TestCluster, run, startTestCluster } from '#test/support/cluster.ts';

const mib = 2 ** 20;
const namespace = 'default';
const [harvester, hypercloud] = imageTypes as unknown as [
  ResourceType<BackupImageObject>,
  ResourceType<BackupImageObject>,
];

const volumeOf = (image: BackupImageObject | undefined): string => image?.status?.children?.volume ?? '';

describe('an image that outlives its cluster', { timeout: 900_000 }, () => {
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
    first = await startTestCluster({ tickSeconds: 5 });
    await setTarget(first.kube, targetFields(backup.server));
  });
  afterAll(async () => {
    await second?.close();
    await first?.close();
    await files?.close();
    await backup?.close();
    await rm(dir, { recursive: true, force: true });
  });

  const until = (
    { kube }: TestCluster,
    type: ResourceType<BackupImageObject>,
    name: string,
    isSo: (image: BackupImageObject) => boolean,
  ): Promise<BackupImageObject> => untilImage(kube, type, { namespace, name }, isSo);
  const harvesterImage = (name: string, spec: object): BackupImageObject => ({
    apiVersion: 'harvesterhci.io/v1beta1',
    kind: 'VirtualMachineImage',
    metadata: { name, namespace },
    spec: { displayName: `The ${name}`, sourceType: 'download', url, backup: true, ...spec },
  });
  /** The initial content of a machine's disk: empty if the class fills it, else a copy of this snapshot. */
  const makeDisk = async (
    cluster: TestCluster,
    name: string,
    storageClassName: string,
    snapshot?: string,
  ): Promise<void> => {
    const dataSource = { apiGroup: 'snapshot.storage.k8s.io', kind: 'VolumeSnapshot', name: snapshot ?? '' };
    await cluster.kube.create(persistentVolumeClaims, {
      apiVersion: 'v1',
      kind: 'PersistentVolumeClaim',
      metadata: { name, namespace },
      spec: {
        storageClassName,
        accessModes: [snapshot === undefined ? 'ReadWriteMany' : 'ReadWriteOnce'],
        volumeMode: 'Block',
        resources: { requests: { storage: '32Mi' } },
        ...(snapshot === undefined ? {} : { dataSource }),
      },
    });
    await expect
      .poll(async () => (await cluster.kube.get(persistentVolumeClaims, { namespace, name }))?.status?.phase, {
        timeout: 60_000,
      })
      .toBe('Bound');
  };
  const cloneDisk = async (cluster: TestCluster, name: string, claim: string): Promise<void> => {
    await cluster.kube.create(dataVolumeKind.type, {
      apiVersion: 'cdi.kubevirt.io/v1beta1',
      kind: 'DataVolume',
      metadata: { name, namespace },
      spec: { source: { pvc: { namespace, name: claim } }, storage: { storageClassName: 'local' } },
    });
    await expect
      .poll(async () => (await cluster.kube.get(dataVolumeKind.type, { namespace, name }))?.status?.phase, {
        timeout: 60_000,
      })
      .toBe('Succeeded');
  };
  /** Simulates Longhorn: its backup becomes known to a cluster, and its file is where it restores from. */
  const tellOfLonghornBackup = async (cluster: TestCluster, name: string): Promise<void> => {
    await cluster.kube.create(backupBackingImages, {
      apiVersion: 'longhorn.io/v1beta2',
      kind: 'BackupBackingImage',
      metadata: { name, namespace: longhornNamespace },
      status: {
        state: 'Completed',
        backingImage: name,
        url: `s3://backups@us-east-1/?backingImage=${name}`,
      },
    });
    await cluster.kube.mergePatch(
      backupBackingImages,
      { name, namespace: longhornNamespace },
      {
        status: {
          state: 'Completed',
          backingImage: name,
          url: `s3://backups@us-east-1/?backingImage=${name}`,
        },
      },
      { subresource: 'status' },
    );
  };
  const prove = async (cluster: TestCluster, name: string) => {
    const disk = await diskOf(cluster, { namespace, name });
    await proveIdentical(disk, { file: raw, format: 'raw', compression: 'none' }, dir);
  };

  it('is backed up with its bytes before the metadata that names them', async () => {
    await first.kube.create(hypercloud, {
      apiVersion: 'hypercloud.tmaxanc.com/v1alpha1',
      kind: 'VirtualMachineImage',
      metadata: { name: 'jammy', namespace },
      spec: { storageClassName: 'local', backup: true, source: { http: url } },
    });
    await first.kube.create(harvester, harvesterImage('cdi', { backend: 'cdi', targetStorageClassName: 'local' }));
    await first.kube.create(harvester, harvesterImage('longhorn', {}));
    const kept = await until(first, hypercloud, 'jammy', isKept);
    expect(kept.status?.backup).toMatchObject({
      object: 'harvester/vmimages/default-jammy/vmimage-metadata.yaml',
      disk: expect.stringMatching(/^[0-9a-f]{64}$/),
    });
    // One disk, however many images share it.
    const other = await until(first, harvester, 'cdi', isKept);
    expect(other.status?.backup?.disk).toBe(kept.status?.backup?.disk);
    const objects = (await Array.fromAsync(backup.store.list(''))).map(({ key }) => key);
    expect(objects.filter((key) => key.includes('/disks/'))).toHaveLength(1);
    expect(objects).toContain('harvester/vmimages/default-cdi/vmimage-metadata.yaml');
  });

  it('is backed up by Longhorn itself, and its metadata once that is complete', async () => {
    const waiting = await until(first, harvester, 'longhorn', isReady);
    const name = waiting.status?.children?.backingImage ?? '';
    expect(isTrue(waiting.status?.conditions, 'DataReady')).toBe(false);
    await tellOfLonghornBackup(first, name);
    const kept = await until(first, harvester, 'longhorn', isKept);
    expect(kept.status).toMatchObject({ backupTarget: { bucketName: 'backups' } });
    // The file of Longhorn's own backup store, which outlives the cluster, too.
    const { status } = (await first.kube.get(backingImages, { namespace: longhornNamespace, name })) ?? {};
    await copyFile(join(first.dataDir, 'longhorn', 'files', status?.uuid ?? ''), join(dir, name));
  });

  it('is restored in an empty cluster, byte for byte', async () => {
    const { status: lost } = (await first.kube.get(harvester, { namespace, name: 'longhorn' }))!;
    const backingImage = lost!.children!.backingImage!;
    const storageClassName = lost!.storageClassName!;
    await first.close();
    await files.close();
    second = await startTestCluster({ tickSeconds: 5 });
    const backups = join(second.dataDir, 'longhorn', 'backups');
    await mkdir(backups, { recursive: true });
    await copyFile(join(dir, backingImage), join(backups, backingImage));
    await setTarget(second.kube, targetFields(backup.server));
    const restored = await until(second, hypercloud, 'jammy', isBack);
    expect(restored.spec['storageClassName']).toBe('local');
    await prove(second, volumeOf(restored));
    await makeDisk(second, 'of-csi', 'local', restored.status?.children?.snapshot);
    await prove(second, 'of-csi');
    const cdi = await until(second, harvester, 'cdi', isBack);
    await prove(second, volumeOf(cdi));
    await cloneDisk(second, 'of-cdi', volumeOf(cdi));
    await prove(second, 'of-cdi');
    // Longhorn has not listed its store yet: the others did not wait for it.
    expect(await second.kube.get(harvester, { namespace, name: 'longhorn' })).toBeUndefined();
    await tellOfLonghornBackup(second, backingImage);
    const longhorn = await until(second, harvester, 'longhorn', isBack);
    // The class that volumes in VM backups refer to.
    expect(longhorn.status).toMatchObject({ storageClassName, children: { backingImage } });
    // The metadata of the first cluster is complete: nothing is written in addition.
    const written = (await Array.fromAsync(backup.store.list('harvester/vmimages/'))).map(
      ({ key }) => key.split('/')[2],
    );
    expect(written).toEqual(['default-cdi', 'default-jammy', 'default-longhorn']);
    await makeDisk(second, 'of-longhorn', storageClassName);
    await prove(second, 'of-longhorn');
  });

  it.each(['of-csi', 'of-cdi', 'of-longhorn'])('boots from a root disk %s', async (name) => {
    const result = await bootDisk(await diskOf(second, { namespace, name }), bootLine, 200);
    if (result.kind === 'no-emulator') return console.warn('not booted: apt-get install -y qemu-system-x86');
    expect(result).toMatchObject({ kind: 'matched', line: bootLine });
  });

  it('is listed, with the result of a restore', async () => {
    const backups = (...args: readonly string[]) =>
      runBullion(['backups', ...args, '--dry-run', '--kubeconfig', second.kubeconfigPath]);
    const { code, out } = await backups();
    expect(code).toBe(0);
    expect(out).toMatch(/default\/jammy .*hypercloud.* none: it is here .*default-jammy\/vmimage-metadata\.yaml/);
    expect(out).toMatch(/default\/longhorn .*by Longhorn/);
    const swept = 'a sweep would remove 0 disks and 0 chunks that nothing refers to, 0 B; 1 disk stays\n';
    expect(await backups('--sweep')).toMatchObject({ code: 0, out: swept });
  });

  it('is restored into a namespace once its owner has provided the credentials', async () => {
    const metadata = await backup.store.read('harvester/vmimages/default-jammy/vmimage-metadata.yaml', mib);
    const moved = metadata!.bytes
      .toString()
      .replace('namespace: default', 'namespace: team')
      .replace(/uid: .*/, 'uid: moved');
    await backup.store.write('harvester/vmimages/team-jammy/vmimage-metadata.yaml', Buffer.from(moved));
    await expect
      .poll(() => second.kube.get(namespaces, { name: 'team' }), { timeout: 60_000, interval: 500 })
      .toBeDefined();
    await second.kube.create(secrets, targetSecret('team'));
    await untilImage(second.kube, hypercloud, { namespace: 'team', name: 'jammy' }, isReady);
  });

  it('is not restored once it was deleted', async () => {
    await second.kube.delete(hypercloud, { namespace, name: 'jammy' });
    await expect
      .poll(() => second.kube.get(hypercloud, { namespace, name: 'jammy' }), { timeout: 60_000, interval: 200 })
      .toBeUndefined();
    const keys = (await Array.fromAsync(backup.store.list('harvester/vmimages/'))).map(({ key }) => key);
    expect(keys.some((key) => key.endsWith('/deleted.yaml'))).toBe(true);
    // Its interval is a second: the target is listed again meanwhile.
    await new Promise((resolve) => setTimeout(resolve, 6000));
    expect(await second.kube.get(hypercloud, { namespace, name: 'jammy' })).toBeUndefined();
  });

  it('shows its credentials nowhere', async () => {
    const kinds: readonly ResourceType[] = [jobs, pods, kubeEvents, harvester, hypercloud];
    const lists = await Promise.all(kinds.map((type) => second.kube.list(type, { namespace })));
    const all = JSON.stringify(lists) + (await readFile(second.logFile, 'utf8'));
    expect(all).toContain('image restored');
    expect(all).not.toContain(backupCredentials.secretAccessKey);
  });
});
