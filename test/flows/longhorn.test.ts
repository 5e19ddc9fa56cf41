// Harvester images as its users write them, without a backend, on the local cluster: stored as backing images of the simulated Longhorn, with real bytes.
import { execFile } from 'node:child_process';
import { mkdtemp, readFile, readdir, rm, stat, writeFile } from 'node:fs/promises';
import { createHash } from 'node:crypto';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { promisify } from 'node:util';
import { gunzipSync, gzipSync } from 'node:zlib';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type FileServer, startFileServer } from '#infra/local/demo/file-server.ts';
import { diskOf } from '#infra/local/demo/import.ts';
import {
  type PersistentVolumeClaim,
  persistentVolumeClaims,
  secrets,
  storageClasses,
} from '#shared/api/foreign/core.ts';
import { backingImages, longhornNamespace } from '#shared/api/foreign/longhorn.ts';
import { type HarvesterImage, type HarvesterImageStatus, harvesterImageKind } from '#shared/api/harvester/image.ts';
import { type TestCluster, leftOvers, namespace, startTestCluster } from '#test/support/cluster.ts';
import { linuxDiskBytes, makeLinuxDisk, publish } from '#test/support/disks.ts';
import { untilStatus } from '#test/support/until.ts';

const run = promisify(execFile);
const images = harvesterImageKind.type;
const mib = 2 ** 20;
const apiVersion = 'harvesterhci.io/v1beta1';

type Spec = Partial<HarvesterImage['spec']>;
const conditionOf = (status: HarvesterImageStatus | undefined, type: string) =>
  status?.conditions?.find((condition) => condition.type === type);
const isImported = (status: HarvesterImageStatus) => conditionOf(status, 'Imported')?.status === 'True';
const isOver = (status: HarvesterImageStatus) =>
  isImported(status) || conditionOf(status, 'RetryLimitExceeded')?.status === 'True';

describe('Harvester images on Longhorn', { timeout: 600_000 }, () => {
  let dir: string;
  let raw: string;
  let qcow2: string;
  let url: string;
  let cluster: TestCluster;
  let server: FileServer;

  const until = async (
    name: string,
    isSo: (status: HarvesterImageStatus) => boolean,
    seconds = 200,
  ): Promise<HarvesterImageStatus> => untilStatus(cluster.kube, images, { namespace, name }, isSo, seconds);
  const create = (name: string, spec: Spec): Promise<HarvesterImage> =>
    cluster.kube.create(images, {
      apiVersion,
      kind: 'VirtualMachineImage',
      metadata: { name, namespace },
      spec: { displayName: name, sourceType: 'download', ...spec },
    });
  const settle = async (name: string, spec: Spec): Promise<HarvesterImageStatus> => {
    await create(name, spec);
    return until(name, isOver);
  };
  const makeDisk = async (name: string, storageClassName: string, storage = '64Mi'): Promise<void> => {
    const claim: PersistentVolumeClaim = {
      apiVersion: 'v1',
      kind: 'PersistentVolumeClaim',
      metadata: { name, namespace },
      spec: {
        storageClassName,
        accessModes: ['ReadWriteMany'],
        volumeMode: 'Block',
        resources: { requests: { storage } },
      },
    };
    await cluster.kube.create(persistentVolumeClaims, claim);
    await expect
      .poll(async () => (await cluster.kube.get(persistentVolumeClaims, { namespace, name }))?.status?.phase, {
        timeout: 120_000,
      })
      .toBe('Bound');
  };
  /** Byte for byte; anything beyond the original must be zero. */
  const compare = async (claim: string): Promise<void> => {
    const disk = await diskOf(cluster, { namespace, name: claim });
    await expect(run('qemu-img', ['compare', '-f', 'raw', '-F', 'raw', raw, disk])).resolves.toBeDefined();
  };
  const isGone = async (name: string) => (await cluster.kube.get(images, { namespace, name })) === undefined;
  const removeImage = async (name: string): Promise<void> => {
    await cluster.kube.delete(images, { namespace, name });
    await expect.poll(() => isGone(name), { timeout: 120_000 }).toBe(true);
  };
  const removeDisk = async (name: string): Promise<void> => {
    await cluster.kube.delete(persistentVolumeClaims, { namespace, name });
    await expect
      .poll(() => cluster.kube.get(persistentVolumeClaims, { namespace, name }), { timeout: 120_000 })
      .toBeUndefined();
  };

  beforeAll(async () => {
    dir = await mkdtemp(join(tmpdir(), 'bullion-longhorn-'));
    raw = await makeLinuxDisk(dir);
    qcow2 = await publish(raw, 'qcow2');
    server = await startFileServer();
    url = server.offer(basename(qcow2), qcow2);
    cluster = await startTestCluster();
  }, 120_000);
  afterAll(async () => {
    await cluster?.close();
    await server?.close();
    await rm(dir, { recursive: true, force: true });
  });

  it('become usable unchanged, and disks start as copies of them', async () => {
    const status = await settle('leap', { url });
    const object = await cluster.kube.get(images, { namespace, name: 'leap' });
    const { uid } = object!.metadata;
    expect(object?.spec).toMatchObject({
      backend: 'backingimage',
      storageClassParameters: { numberOfReplicas: '3', migratable: 'true' },
    });
    expect(status).toMatchObject({
      progress: 100,
      size: (await stat(qcow2)).size,
      virtualSize: linuxDiskBytes,
      storageClassName: `lh-${uid}`,
      attempts: 1,
      failed: 0,
    });
    expect(conditionOf(status, 'Initialized')?.status).toBe('True');
    expect(conditionOf(status, 'Ready')?.status).toBe('True');
    await makeDisk('root', `lh-${uid}`);
    await compare('root');
  });

  it('are not deleted while disks depend on them', async () => {
    await cluster.kube.delete(images, { namespace, name: 'leap' });
    const status = await until('leap', (it) => it.phase === 'Terminating');
    expect(conditionOf(status, 'Ready')).toMatchObject({
      reason: 'InUse',
      message: expect.stringContaining('PersistentVolumeClaim default/root') as string,
    });
    await expect(
      cluster.kube.delete(backingImages, { namespace: longhornNamespace, name: status.children!.backingImage! }),
    ).rejects.toThrow('there are replicas using it');
    await removeDisk('root');
    await expect.poll(() => isGone('leap'), { timeout: 120_000 }).toBe(true);
    expect(await leftOvers(cluster.kube, cluster.dataDir)).toEqual([]);
    await expect.poll(() => readdir(join(cluster.dataDir, 'longhorn', 'files'))).toEqual([]);
  });

  it('keep their class: it cannot be deleted', async () => {
    const { storageClassName: name = '' } = await settle('kept', { url });
    await expect(cluster.kube.delete(storageClasses, { name })).rejects.toThrow('delete that image instead');
    await removeImage('kept');
    expect(await cluster.kube.get(storageClasses, { name })).toBeUndefined();
  });

  it('report what is wrong with their file, and how often it was tried', async () => {
    const missing = await settle('missing', { url: `${server.url}/none.qcow2` });
    // Longhorn got no request.
    expect(missing).toMatchObject({ phase: 'Failed', attempts: 0, failed: 0 });
    expect(conditionOf(missing, 'Ready')?.reason).toBe('SourceNotFound');
    const wrong = await settle('wrong', { url, checksum: 'ab'.repeat(64) });
    expect(conditionOf(wrong, 'RetryLimitExceeded')?.message).toContain('checksum');
    expect(conditionOf(wrong, 'Ready')?.reason).toBe('ChecksumMismatch');
    const sha512 = createHash('sha512')
      .update(await readFile(qcow2))
      .digest('hex');
    const right = await settle('right', { url, checksum: sha512 });
    expect(right.digests).toEqual({ sha512 });
    for (const name of ['missing', 'wrong', 'right']) await removeImage(name);
  });

  it('are never made from a file that refers to another one, is truncated, or is compressed', async () => {
    const overlay = join(dir, 'overlay.qcow2');
    await run('qemu-img', ['create', '-q', '-f', 'qcow2', '-u', '-b', '/etc/passwd', '-F', 'raw', overlay, '64M']);
    const whole = await readFile(qcow2);
    const cut = join(dir, 'cut.qcow2');
    await writeFile(cut, whole.subarray(0, whole.length / 2));
    const odd = join(dir, 'odd.raw');
    await writeFile(odd, Buffer.alloc(4096 + 6, 1));
    const packed = join(dir, 'disk.raw.gz');
    await writeFile(packed, gzipSync(Buffer.alloc(4096, 1)));
    const rows = [
      ['overlay', overlay, 'ExternalReference', /backing file.*flatten/],
      ['cut', cut, 'ImageTruncated', /publish the whole file/],
      ['odd', odd, 'UnsupportedFormat', /multiple of 512/],
      ['packed', packed, 'UnsupportedFormat', /raw in gz.*unpack/],
    ] as const;
    for (const [name, path, reason, words] of rows) {
      const status = await settle(name, { url: server.offer(name, path) });
      expect(conditionOf(status, 'Ready')).toMatchObject({ reason, message: expect.stringMatching(words) as string });
    }
    expect((await cluster.kube.list(backingImages, { namespace: longhornNamespace })).items).toEqual([]);
    expect(await readdir(join(cluster.dataDir, 'longhorn', 'files'))).toEqual([]);
    for (const [name] of rows) await removeImage(name);
  });

  it('are created from a volume, and copied, encrypted and decrypted', async () => {
    const source = await settle('source', { url });
    await makeDisk('disk', source.storageClassName!);
    const exported = await settle('exported', {
      sourceType: 'export-from-volume',
      pvcName: 'disk',
      pvcNamespace: namespace,
    });
    expect(exported).toMatchObject({ phase: 'Imported', size: 64 * mib, virtualSize: 64 * mib });
    await makeDisk('of-exported', exported.storageClassName!);
    await compare('of-exported');

    const key = { CRYPTO_KEY_VALUE: Buffer.from('correct horse').toString('base64') };
    await cluster.kube.create(secrets, {
      apiVersion: 'v1',
      kind: 'Secret',
      metadata: { name: 'key', namespace },
      data: key,
    });
    const stages = ['provisioner', 'node-stage', 'node-publish'];
    const keys = stages.flatMap((stage) => [
      [`csi.storage.k8s.io/${stage}-secret-name`, 'key'],
      [`csi.storage.k8s.io/${stage}-secret-namespace`, namespace],
    ]);
    await cluster.kube.create(storageClasses, {
      apiVersion: 'storage.k8s.io/v1',
      kind: 'StorageClass',
      metadata: { name: 'secret' },
      provisioner: 'driver.longhorn.io',
      parameters: { numberOfReplicas: '1', encrypted: 'true', ...Object.fromEntries(keys) },
    });
    const of = (sourceImageName: string, cryptoOperation: 'encrypt' | 'decrypt'): Spec => ({
      sourceType: 'clone',
      securityParameters: { cryptoOperation, sourceImageName, sourceImageNamespace: namespace },
    });
    const encrypted = await settle('encrypted', { ...of('source', 'encrypt'), targetStorageClassName: 'secret' });
    expect(encrypted).toMatchObject({ phase: 'Imported', virtualSize: linuxDiskBytes });
    const { status } = (await cluster.kube.get(backingImages, {
      namespace: longhornNamespace,
      name: encrypted.children!.backingImage!,
    }))!;
    const stored = await readFile(join(cluster.dataDir, 'longhorn', 'files', status!.uuid!));
    expect(stored.includes((await readFile(raw)).subarray(1024, 1024 + 4096))).toBe(false);
    await makeDisk('of-encrypted', encrypted.storageClassName!);
    await compare('of-encrypted');
    const decrypted = await settle('decrypted', { ...of('encrypted', 'decrypt'), targetStorageClassName: 'longhorn' });
    await makeDisk('of-decrypted', decrypted.storageClassName!);
    await compare('of-decrypted');
    for (const name of ['disk', 'of-exported', 'of-encrypted', 'of-decrypted']) await removeDisk(name);
    for (const name of ['decrypted', 'encrypted', 'exported', 'source']) await removeImage(name);
    expect(await leftOvers(cluster.kube, cluster.dataDir)).toEqual([]);
  });

  it('are uploaded, and downloaded again', async () => {
    await create('sent', { sourceType: 'upload' });
    const { children } = await until('sent', (it) => conditionOf(it, 'Ready')?.reason === 'WaitingForUpload');
    const api = `${cluster.longhorn!.url}/v1/backingimages/${children!.backingImage!}`;
    const send = (bytes: Uint8Array<ArrayBuffer>) => {
      const form = new FormData();
      form.append('chunk', new Blob([bytes]), 'disk.img');
      return fetch(`${api}?action=upload&size=${bytes.length}`, { method: 'POST', body: form });
    };
    const refused = async () => {
      const answer = await send(new Uint8Array(6));
      return [answer.status, await answer.text()];
    };
    // The status names the backing image before Longhorn has observed it.
    await expect.poll(refused).toEqual([500, expect.stringContaining('multiple of 512 bytes')]);
    const bytes = new Uint8Array(await readFile(raw));
    expect((await send(bytes)).status).toBe(200);
    const status = await until('sent', isOver);
    expect(status).toMatchObject({ phase: 'Imported', size: linuxDiskBytes });
    const fetched = await fetch(`${api}/download`);
    expect(gunzipSync(await fetched.arrayBuffer()).equals(bytes)).toBe(true);
    await removeImage('sent');
  });

  it('are restored from a backup under its names', async () => {
    const { mkdir, copyFile } = await import('node:fs/promises');
    const backups = join(cluster.dataDir, 'longhorn', 'backups');
    await mkdir(backups, { recursive: true });
    await copyFile(qcow2, join(backups, 'vmi-1234'));
    const status = await settle('restored', {
      sourceType: 'restore',
      url: 's3://backups@us-east-1/?backingImage=vmi-1234',
    });
    expect(status).toMatchObject({
      phase: 'Imported',
      storageClassName: 'lh-1234',
      children: { backingImage: 'vmi-1234' },
    });
    await makeDisk('of-restored', 'lh-1234');
    await compare('of-restored');
    await removeDisk('of-restored');
    await removeImage('restored');
  });

  it.each([
    ['a name of more than 40 characters', { name: 'x'.repeat(41) }, {}, 'invalid name'],
    ['a checksum that is not a SHA-512', {}, { checksum: 'ab' }, 'invalid checksum'],
    ['a download without a URL', {}, { sourceParameters: {} }, 'invalid parameter url'],
  ])('Longhorn itself rejects %s', async (_what, metadata, spec, words) => {
    const object = {
      apiVersion: 'longhorn.io/v1beta2',
      kind: 'BackingImage',
      metadata: { namespace: longhornNamespace, name: 'refused', ...metadata },
      spec: { sourceType: 'download' as const, sourceParameters: { url }, ...spec },
    };
    await expect(cluster.kube.create(backingImages, object)).rejects.toThrow(words);
  });
});

describe('a cluster without Longhorn', { timeout: 240_000 }, () => {
  it('works, and says at admission what to set instead', async () => {
    const cluster = await startTestCluster({ longhorn: false });
    try {
      const object: HarvesterImage = {
        apiVersion,
        kind: 'VirtualMachineImage',
        metadata: { name: 'leap', namespace },
        spec: { displayName: 'leap', sourceType: 'download', url: 'https://images.example/leap.qcow2' },
      };
      await expect(cluster.kube.create(images, object)).rejects.toThrow('Longhorn is not installed');
    } finally {
      await cluster.close();
    }
  });
});
