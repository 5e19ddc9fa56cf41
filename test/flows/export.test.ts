// Disks exported from the local cluster: as objects of a store and as files, byte for byte; what is rejected, and what must not be left behind.
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import {
  CreateBucketCommand,
  CreateMultipartUploadCommand,
  GetObjectCommand,
  HeadObjectCommand,
  ListMultipartUploadsCommand,
  S3Client,
} from '@aws-sdk/client-s3';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type FileServer, startFileServer } from '#infra/local/demo/file-server.ts';
import { diskOf } from '#infra/local/demo/import.ts';
import { persistentVolumeClaims, pods, secrets } from '#shared/api/foreign/core.ts';
import { volumeSnapshots } from '#shared/api/foreign/snapshot.ts';
import {
  type ExportStatus,
  type VirtualMachineVolumeExport,
  volumeExportKind,
} from '#shared/api/hypercloud/volume-export.ts';
import { virtualMachinePvcKind, virtualMachineVolumeKind } from '#shared/api/hypercloud/volume.ts';
import { type TestCluster, anImage, namespace, run, settle, startTestCluster } from '#test/support/cluster.ts';
import { makeLinuxDisk, publish } from '#test/support/disks.ts';
import { untilGone, untilStatus } from '#test/support/until.ts';

const apiVersion = 'hypercloud.tmaxanc.com/v1alpha1';
const exports = volumeExportKind.type;
const bucket = 'vmimage';

const anExport = (name: string, spec: VirtualMachineVolumeExport['spec']): VirtualMachineVolumeExport => ({
  apiVersion,
  kind: 'VirtualMachineVolumeExport',
  metadata: { name, namespace },
  spec,
});

const isOver = ({ state }: ExportStatus): boolean => state === 'Completed' || state === 'Error';
const readyOf = ({ conditions = [] }: ExportStatus) => conditions.find(({ type }) => type === 'Ready');

describe('exports of volumes', { timeout: 400_000 }, () => {
  let dir: string;
  let raw: string;
  let cluster: TestCluster;
  let server: FileServer;
  let s3: S3Client;

  const until = (name: string, isSo: (status: ExportStatus) => boolean): Promise<ExportStatus> =>
    untilStatus(cluster.kube, exports, { namespace, name }, isSo);
  const make = async (name: string, spec: VirtualMachineVolumeExport['spec'], isSo = isOver): Promise<ExportStatus> => {
    await cluster.kube.create(exports, anExport(name, spec));
    return until(name, isSo);
  };
  const removed = async (name: string) => {
    await cluster.kube.delete(exports, { namespace, name });
    await untilGone(cluster.kube, exports, { namespace, name });
  };
  const compare = async (qcow2: string) =>
    expect(run('qemu-img', ['compare', '-f', 'raw', '-F', 'qcow2', raw, qcow2])).resolves.toBeDefined();
  const fetched = async (Key: string): Promise<string> => {
    const { Body } = await s3.send(new GetObjectCommand({ Bucket: bucket, Key }));
    const file = join(dir, Key.replaceAll('/', '_'));
    await writeFile(file, await Body!.transformToByteArray());
    return file;
  };
  const unfinished = async () => (await s3.send(new ListMultipartUploadsCommand({ Bucket: bucket }))).Uploads ?? [];
  const aGuest = (name: string, claimName: string) =>
    ({
      apiVersion: 'v1',
      kind: 'Pod',
      metadata: { name, namespace },
      spec: {
        restartPolicy: 'Never',
        terminationGracePeriodSeconds: 0,
        containers: [{ name: 'guest', image: 'guest', command: ['sleep', '600'] }],
        volumes: [{ name: 'disk', persistentVolumeClaim: { claimName } }],
      },
    }) as const;

  beforeAll(async () => {
    dir = await mkdtemp(join(tmpdir(), 'bullion-exports-'));
    raw = await makeLinuxDisk(dir);
    server = await startFileServer();
    cluster = await startTestCluster();
    const { data = {} } = (await cluster.kube.get(secrets, { namespace, name: 'object-store' })) ?? {};
    const credentials = {
      accessKeyId: atob(data['accessKeyId'] ?? ''),
      secretAccessKey: atob(data['secretKey'] ?? ''),
    };
    const { url: endpoint, region } = cluster.objectStore;
    s3 = new S3Client({ endpoint, region, forcePathStyle: true, credentials });
    await s3.send(new CreateBucketCommand({ Bucket: bucket }));
    await cluster.kube.create(secrets, {
      apiVersion: 'v1',
      kind: 'Secret',
      metadata: { name: 'export-credentials', namespace },
      data: { AWS_ACCESS_KEY_ID: data['accessKeyId'] ?? '', AWS_SECRET_ACCESS_KEY: data['secretKey'] ?? '' },
    });
    const http = server.offer('disk.qcow2', await publish(raw, 'qcow2'));
    for (const storageClassName of ['local', 'local-plain']) {
      const image = anImage(`golden-${storageClassName}`, { source: { http }, storageClassName });
      await settle(cluster.kube, image, 150);
    }
    const pvc = { apiVersion, kind: 'VirtualMachinePvc', metadata: { name: 'vm-root-disk', namespace } };
    await cluster.kube.create(virtualMachinePvcKind.type, {
      ...pvc,
      spec: { virtualMachineImageName: 'golden-local' },
    });
    const volume = { apiVersion, kind: 'VirtualMachineVolume', metadata: { name: 'vm-root-volume', namespace } };
    const spec = { virtualMachineImage: { name: 'golden-local-plain' } };
    await cluster.kube.create(virtualMachineVolumeKind.type, { ...volume, spec });
  }, 300_000);
  afterAll(async () => {
    s3?.destroy();
    await cluster?.close();
    await server?.close();
    await rm(dir, { recursive: true, force: true });
  });

  it('writes a qcow2 into the configured store, from a snapshot, and reports its properties', async () => {
    // Created together with its volume: it waits for that, and is reconciled by its event.
    const status = await make('export', {
      pvcName: 'vm-root-disk',
      objectStore: { bucketName: bucket, objectName: 'mydisk' },
    });
    expect(status).toMatchObject({ state: 'Completed', progress: 100, from: 'snapshot', format: 'qcow2' });
    expect(status.conditions).toContainEqual(
      expect.objectContaining({ type: 'ReadyToUse', status: 'True', reason: 'vmvExportIsCompleted' }),
    );
    const head = await s3.send(new HeadObjectCommand({ Bucket: bucket, Key: 'mydisk' }));
    expect(status.object).toMatchObject({
      url: `s3://${bucket}/mydisk`,
      size: head.ContentLength,
      etag: head.ETag,
      isConfirmed: true,
    });
    expect(status.size).toBe(head.ContentLength);
    expect(status.digests).toMatchObject({
      crc32: expect.stringMatching(/^[0-9a-f]{8}$/),
      'guest-sha256': expect.stringMatching(/^[0-9a-f]{64}$/),
    });
    await compare(await fetched('mydisk'));
    expect(await unfinished()).toEqual([]);
    const made = `export-${(await cluster.kube.get(exports, { namespace, name: 'export' }))?.metadata.uid}`;
    await untilGone(cluster.kube, volumeSnapshots, { namespace, name: made });
    await untilGone(cluster.kube, persistentVolumeClaims, { namespace, name: made });
  });

  it('keeps the object when the export is deleted afterwards', async () => {
    await removed('export');
    await expect(s3.send(new HeadObjectCommand({ Bucket: bucket, Key: 'mydisk' }))).resolves.toBeDefined();
  });

  it('writes a qcow2 into a store of the user, from a claim that no pod writes to', async () => {
    const url = `${cluster.objectStore.url}/${bucket}/folder/mydisk-2.qcow2`;
    const destination = { s3: { url, secretRef: 'export-credentials' } };
    const status = await make('released', { virtualMachineVolume: { name: 'vm-root-volume' }, destination });
    expect(status).toMatchObject({ state: 'Completed', from: 'claim', object: { url, bucket } });
    await compare(await fetched('folder/mydisk-2.qcow2'));
  });

  it('creates a local file where clients of the original expect it', async () => {
    const status = await make('files', {
      virtualMachineVolume: { name: 'vm-root-volume' },
      destination: { local: {} },
    });
    expect(status).toMatchObject({
      state: 'Completed',
      claimName: 'files-export-pvc',
      podName: 'files-exporter-local',
      digests: { sha256: expect.stringMatching(/^[0-9a-f]{64}$/) },
    });
    expect(status.conditions).toContainEqual(
      expect.objectContaining({ type: 'ReadyToUse', reason: 'VmvExportIsReady', message: 'VmvExport is ready to use' }),
    );
    const file = await diskOf(cluster, { namespace, name: 'files-export-pvc' });
    await compare(file);
    const claim = await cluster.kube.get(persistentVolumeClaims, { namespace, name: 'files-export-pvc' });
    expect(claim).toMatchObject({
      spec: { volumeMode: 'Filesystem', accessModes: ['ReadWriteOnce'] },
      metadata: { annotations: { completed: 'yes' } },
    });
    const phase = async () =>
      (await cluster.kube.get(pods, { namespace, name: 'files-exporter-local' }))?.status?.phase;
    await expect.poll(phase, { timeout: 120_000 }).toBe('Running');
    await removed('files');
    await expect
      .poll(() => cluster.kube.get(persistentVolumeClaims, { namespace, name: 'files-export-pvc' }), {
        timeout: 120_000,
      })
      .toBeUndefined();
    expect(dirname(file)).not.toBe('');
  });

  it('exports the disk of a running machine as it is at one moment', async () => {
    await cluster.kube.create(pods, aGuest('guest', 'vm-root-disk'));
    const objectStore = { bucketName: bucket, objectName: 'running.qcow2' };
    const status = await make('running', { pvcName: 'vm-root-disk', objectStore });
    expect(status).toMatchObject({ state: 'Completed', from: 'snapshot' });
    await compare(await fetched('running.qcow2'));
    await cluster.kube.delete(pods, { namespace, name: 'guest' });
  });

  it('waits for a running machine whose disk cannot be snapshotted, names it, and continues when it stops', async () => {
    await cluster.kube.create(pods, aGuest('busy', 'vm-root-volume-vmv-pvc'));
    const objectStore = { bucketName: bucket, objectName: 'busy.qcow2' };
    const isHeld = (status: ExportStatus) => readyOf(status)?.reason === 'SourceInUse';
    const status = await make('busy', { virtualMachineVolume: { name: 'vm-root-volume' }, objectStore }, isHeld);
    expect(readyOf(status)?.message).toContain('pod busy may write to');
    expect(status).toMatchObject({ state: 'Pending' });
    await cluster.kube.delete(pods, { namespace, name: 'busy' });
    expect(await until('busy', isOver)).toMatchObject({ state: 'Completed' });
    await compare(await fetched('busy.qcow2'));
  });

  it('fails finally when the bucket does not exist, and leaves nothing', async () => {
    const objectStore = { bucketName: 'absent', objectName: 'disk.qcow2' };
    const status = await make('nowhere', { pvcName: 'vm-root-disk', objectStore });
    expect(status).toMatchObject({ state: 'Error', attempts: 1 });
    expect(readyOf(status)?.message).toMatch(
      /^the object store rejected the export: absent\/disk\.qcow2: the bucket does not exist: create it, or name another one \(404 NoSuchBucket\) \(attempt 1 of 4, not retried\)$/,
    );
    await cluster.kube.mergePatch(
      exports,
      { namespace, name: 'nowhere' },
      { metadata: { annotations: { 'bullion.dev/retry': '1' } } },
    );
    await s3.send(new CreateBucketCommand({ Bucket: 'absent' }));
    expect(await until('nowhere', ({ state }) => state === 'Completed')).toMatchObject({
      object: { bucket: 'absent' },
    });
  });

  it('aborts the upload of a killed worker when the export is deleted', async () => {
    const objectStore = { bucketName: bucket, objectName: 'given-up.qcow2' };
    // Like a worker that starts an upload, and is killed.
    await s3.send(new CreateMultipartUploadCommand({ Bucket: bucket, Key: objectStore.objectName }));
    expect(await unfinished()).toHaveLength(1);
    await make('given-up', { pvcName: 'vm-root-disk', objectStore }, ({ children }) => children?.job !== undefined);
    await removed('given-up');
    expect(await unfinished()).toEqual([]);
  });

  it('rejects two exports to the same object', async () => {
    const objectStore = { bucketName: bucket, objectName: 'running.qcow2' };
    const status = await make('second', { pvcName: 'vm-root-disk', objectStore });
    expect(readyOf(status)).toMatchObject({ reason: 'DestinationTaken', message: expect.stringContaining('running') });
  });

  it.each([
    ['no source', { objectStore: { bucketName: bucket, objectName: 'x' } }, 'exactly one of pvcName'],
    ['no destination', { pvcName: 'a' }, 'exactly one of objectStore'],
    [
      'a password in the address',
      { pvcName: 'a', destination: { s3: { url: 'https://u:p@vmimage.store.example/x' } } },
      'password',
    ],
    [
      'an address without a key',
      { pvcName: 'a', destination: { s3: { url: 'https://vmimage.store.example/' } } },
      'does not refer to an object',
    ],
  ])('rejects %s', async (_, spec, words) => {
    await expect(cluster.kube.create(exports, anExport('wrong', spec))).rejects.toThrow(words);
  });
});
