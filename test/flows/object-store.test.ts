import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { CreateBucketCommand, PutObjectCommand, S3Client } from '@aws-sdk/client-s3';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { writeBootDisk } from '#infra/local/demo/boot-disk.ts';
import { diskOf } from '#infra/local/demo/import.ts';
import { proveIdentical } from '#infra/local/demo/prove.ts';
import { jobs, kubeEvents, namespaces, pods, secrets, storageClasses } from '#shared/api/foreign/core.ts';
import type { ResourceType } from '#shared/api/object.ts';
import type { HyperCloudImage } from '#shared/api/hypercloud/image.ts';
import {
  type ImageStatus,
  type TestCluster,
  anImage,
  deleteImage,
  followUntil,
  images,
  isOver,
  namespace,
  readyOf,
  run,
  settle,
  startTestCluster,
} from '#test/support/cluster.ts';

const mib = 2 ** 20;

describe('an image from the object store', { timeout: 500_000 }, () => {
  let dir: string;
  let qcow2: string;
  let secretKey: string;
  let cluster: TestCluster;
  beforeAll(async () => {
    dir = await mkdtemp(join(tmpdir(), 'bullion-bucket-'));
    const raw = join(dir, 'disk.raw');
    qcow2 = join(dir, 'disk.qcow2');
    await writeBootDisk(raw, { bytes: 64 * mib, dataBytes: 8 * mib });
    await run('qemu-img', ['convert', '-f', 'raw', '-O', 'qcow2', raw, qcow2]);
    cluster = await startTestCluster();
    const { data = {} } = (await cluster.kube.get(secrets, { namespace, name: 'object-store' })) ?? {};
    secretKey = atob(data['secretKey'] ?? '');
    const { url: endpoint, region } = cluster.objectStore;
    const credentials = { accessKeyId: atob(data['accessKeyId'] ?? ''), secretAccessKey: secretKey };
    const s3 = new S3Client({ endpoint, region, forcePathStyle: true, credentials });
    await s3.send(new CreateBucketCommand({ Bucket: 'vmimage' }));
    const Body = await readFile(qcow2);
    await s3.send(new PutObjectCommand({ Bucket: 'vmimage', Key: 'bionic-server-cloudimg-amd64.img', Body }));
    s3.destroy();
    // The class that manifests of HyperCloud name.
    const local = await cluster.kube.get(storageClasses, { name: 'local' });
    await cluster.kube.create(storageClasses, { ...local!, metadata: { name: 'cephrbd' } });
  });
  afterAll(async () => {
    await cluster.close();
    await rm(dir, { recursive: true, force: true });
  });

  const fromBucket = (name: string, over: object = {}): HyperCloudImage =>
    anImage(name, {
      storageClassName: 'cephrbd',
      source: {
        objectStore: { bucketName: 'vmimage', objectName: 'bionic-server-cloudimg-amd64.img', ...over },
      },
    });
  /** What more users may read than Secrets: the Job, its pods, the events, and the log. */
  const told = async (): Promise<string> => {
    const kinds: readonly ResourceType[] = [jobs, pods, kubeEvents, images];
    const lists = await Promise.all(kinds.map((type) => cluster.kube.list(type, { namespace })));
    return JSON.stringify(lists) + (await readFile(cluster.logFile, 'utf8'));
  };

  it('contains the bytes of the object', async () => {
    const name = 'ubuntu-from-bucket';
    const status = await settle(cluster.kube, fromBucket(name));
    expect(status).toMatchObject({ state: 'Available', format: 'qcow2', virtualSize: 64 * mib });
    const disk = await diskOf(cluster, { namespace, name: status.children?.volume ?? '' });
    const published = { file: qcow2, format: 'qcow2', compression: 'none' };
    await expect(proveIdentical(disk, published, dir)).resolves.toBeUndefined();
    const all = await told();
    expect(all).toContain('/source-secret');
    expect(all).not.toContain(secretKey);
    await deleteImage(cluster.kube, name);
  });

  it.each([
    ['no-key', { objectName: 'absent.img' }, 'vmimage/absent.img: the bucket has no such object'],
    ['no-bucket', { bucketName: 'absent' }, 'the bucket does not exist'],
  ])('fails at once when nothing exists there: %s', async (name, over, words) => {
    const status = await settle(cluster.kube, fromBucket(name, over));
    expect(readyOf(status)).toMatchObject({ reason: 'SourceNotFound', message: expect.stringContaining(words) });
    expect(status.attempts).toBe(1);
    await deleteImage(cluster.kube, name);
  });

  const inNamespace = async (where: string, data?: Record<string, string>): Promise<ImageStatus | undefined> => {
    const metadata = { name: 'object-store', namespace: where };
    await cluster.kube.create(namespaces, { apiVersion: 'v1', kind: 'Namespace', metadata: { name: where } });
    if (data !== undefined) await cluster.kube.create(secrets, { apiVersion: 'v1', kind: 'Secret', metadata, data });
    const image = fromBucket('elsewhere');
    await cluster.kube.create(images, { ...image, metadata: { ...image.metadata, namespace: where } });
    const statusNow = async () => (await cluster.kube.get(images, { namespace: where, name: 'elsewhere' }))?.status;
    await expect
      .poll(async () => (await statusNow())?.state, { timeout: 150_000, interval: 100 })
      .toMatch(/Error|Available/);
    return statusNow();
  };

  it('reports wrong credentials, and does not retry', async () => {
    const status = await inNamespace('wrong', { accessKeyId: btoa('nobody'), secretKey: btoa('nothing') });
    expect(readyOf(status)).toMatchObject({
      reason: 'SourceForbidden',
      message: expect.stringContaining('the access key is unknown to the store: check the Secret'),
    });
  });

  it('names a Secret that is missing in the namespace', async () => {
    const status = await inNamespace('bare');
    expect(readyOf(status)).toMatchObject({
      reason: 'SourceForbidden',
      message: expect.stringContaining('Secret object-store of the object store is missing in this namespace'),
    });
  });

  it('keeps retrying while the store is down, and reports it', async () => {
    await cluster.objectStore.close();
    await cluster.kube.create(images, fromBucket('down'));
    const observed = await followUntil(cluster.kube, 'down', (status) => (status.failed ?? 0) > 0 || isOver(status));
    expect(JSON.stringify(observed.at(-1))).toContain('cannot connect to 127.0.0.1');
    expect(observed.at(-1)?.state).toBe('Creating');
    await deleteImage(cluster.kube, 'down');
  });
});
