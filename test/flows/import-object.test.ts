// Objects that are imported automatically, from the object store of the local cluster, with the AWS SDK as the client.
import { createHash } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { CreateBucketCommand, DeleteObjectCommand, PutObjectCommand, S3Client } from '@aws-sdk/client-s3';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { writeBootDisk } from '#infra/local/demo/boot-disk.ts';
import { type DataSource, dataSourceKind } from '#shared/api/cdi/data-source.ts';
import { findCondition } from '#shared/api/conditions.ts';
import { kubeEvents } from '#shared/api/foreign/core.ts';
import type { HyperCloudImage } from '#shared/api/hypercloud/image.ts';
import { type TestCluster, images, namespace, run, startTestCluster } from '#test/support/cluster.ts';

const mib = 2 ** 20;
const Bucket = 'images';

describe('objects that are imported automatically', { timeout: 180_000 }, () => {
  let dir: string;
  let cluster: TestCluster;
  let client: S3Client;
  let disks: Record<'one' | 'two', Buffer>;
  beforeAll(async () => {
    dir = await mkdtemp(join(tmpdir(), 'bullion-objects-'));
    const makeDisk = async (name: string, bytes: number): Promise<Buffer> => {
      const raw = join(dir, `${name}.raw`);
      await writeBootDisk(raw, { bytes, dataBytes: mib });
      await run('qemu-img', ['convert', '-f', 'raw', '-O', 'qcow2', raw, join(dir, name)]);
      return readFile(join(dir, name));
    };
    disks = { one: await makeDisk('one', 8 * mib), two: await makeDisk('two', 16 * mib) };
    cluster = await startTestCluster();
    const [, accessKeyId = '', secretAccessKey = ''] =
      /aws_access_key_id = (\S+)\naws_secret_access_key = (\S+)/.exec(
        await readFile(cluster.objectStore.credentialsFile, 'utf8'),
      ) ?? [];
    client = new S3Client({
      endpoint: cluster.objectStore.url,
      region: cluster.objectStore.region,
      forcePathStyle: true,
      credentials: { accessKeyId, secretAccessKey },
    });
    await client.send(new CreateBucketCommand({ Bucket }));
  });
  afterAll(async () => {
    client.destroy();
    await cluster.close();
    await rm(dir, { recursive: true, force: true });
  });

  const put = (Key: string, Body: Buffer | string, Metadata: Record<string, string> = {}) =>
    client.send(new PutObjectCommand({ Bucket, Key, Body, Metadata }));

  /** The DataSource of this name once it matches, with the images that exist by then. */
  const until = async (
    name: string,
    isSo: (source: DataSource | undefined, made: readonly HyperCloudImage[]) => boolean,
  ) => {
    const deadline = Date.now() + 90_000;
    for (;;) {
      const source = await cluster.kube.get(dataSourceKind.type, { namespace, name });
      const { items } = await cluster.kube.list(images, { namespace });
      const made = items.filter(({ metadata }) => metadata.name.startsWith(`${name}-`));
      if (isSo(source, made)) return { source, made };
      if (Date.now() > deadline)
        throw new Error(
          `${name} is still ${JSON.stringify({ source, made: made.map(({ status }) => status) }, undefined, 1)}`,
        );
      await sleep(100);
    }
  };
  const isReady = (source: DataSource | undefined): boolean =>
    findCondition(source?.status?.conditions as never, 'Ready')?.status === 'True';
  const sizes = (made: readonly HyperCloudImage[]) =>
    made.map(({ status }) => status?.virtualSize ?? 0).toSorted((a, b) => a - b);

  const untilTold = async (reason: string, about: string) => {
    const deadline = Date.now() + 30_000;
    const fieldSelector = `involvedObject.name=${about}`;
    for (;;) {
      const { items } = await cluster.kube.list(kubeEvents, { namespace, fieldSelector });
      const told = items.find((event) => event.reason === reason);
      if (told !== undefined) return told;
      if (Date.now() > deadline) throw new Error(`nobody said ${reason} of ${about}`);
      await sleep(100);
    }
  };

  it('an object with any key becomes an image with a name to clone it by', async () => {
    await put('Ubuntu 24.04 (ü).qcow2', disks.one, { 'bullion-name': 'noble', 'bullion-labels': 'os=ubuntu' });
    const { source, made } = await until('noble', isReady);
    expect(sizes(made)).toEqual([8 * mib]);
    expect(source?.metadata.labels?.['os']).toBe('ubuntu');
    expect(source?.spec.source.pvc?.name).toBe(made[0]?.status?.children?.volume);
  });

  it('labels and display name in a file next to it are set on image and name, without a new version', async () => {
    await put('Ubuntu 24.04 (ü).qcow2.json', JSON.stringify({ displayName: 'Noble', labels: { os: 'linux' } }));
    const { source, made } = await until('noble', (observed) => observed?.metadata.labels?.['os'] === 'linux');
    expect(made).toHaveLength(1);
    for (const object of [source, ...made]) {
      expect(object?.metadata.labels?.['os']).toBe('linux');
      expect(object?.metadata.annotations?.['bullion.dev/display-name']).toBe('Noble');
    }
  });

  it('a rejected object is reported in its namespace', async () => {
    await put('broken.qcow2.json', '{');
    await put('broken.qcow2', disks.one);
    const told = await untilTold('ObjectRefused', namespace);
    expect(told.message).toContain('object broken.qcow2 of bucket images is not imported: the .json beside the object');
  });

  it('a replaced object becomes a new version behind the same name', async () => {
    await put('jammy.qcow2', disks.one);
    const { source: before } = await until('jammy', isReady);
    await put('jammy.qcow2', disks.two);
    const { made } = await until(
      'jammy',
      (source) => isReady(source) && source?.spec.source.pvc?.name !== before?.spec.source.pvc?.name,
    );
    expect(sizes(made)).toEqual([8 * mib, 16 * mib]);
  });

  it('a checksum next to it is verified, and the name keeps the last valid version', async () => {
    const { source: before } = await until('jammy', isReady);
    await put('jammy.qcow2.sha256', `${'0'.repeat(64)}  jammy.qcow2\n`);
    const { made } = await until('jammy', (_, all) => all.some(({ status }) => status?.phase === 'Failed'));
    expect(made.find(({ status }) => status?.phase === 'Failed')?.status?.lastFailure?.reason).toMatch(/Checksum/);
    const { source: during } = await until('jammy', isReady);
    expect(during?.spec.source.pvc?.name).toBe(before?.spec.source.pvc?.name);
    await put('jammy.qcow2.sha256', createHash('sha256').update(disks.two).digest('hex'));
    const { source: after } = await until(
      'jammy',
      (source) => isReady(source) && source?.spec.source.pvc?.name !== before?.spec.source.pvc?.name,
    );
    expect(after?.metadata.uid).toBe(before?.metadata.uid);
  });

  it('two objects with the same name: the first has it, the second reports the conflict', async () => {
    await put('sub/../jammy.iso', disks.one, { 'bullion-name': 'jammy' });
    const told = await untilTold('NameTaken', 'jammy');
    expect(told.message).toContain('object sub/../jammy.iso of bucket images has the name jammy');
  });

  it('a deleted object keeps its image when the rule says so', async () => {
    await client.send(new DeleteObjectCommand({ Bucket, Key: 'Ubuntu 24.04 (ü).qcow2' }));
    await sleep(1_500);
    const { source } = await until('noble', isReady);
    expect(isReady(source)).toBe(true);
  });

  it('an object that is not an image is ignored', async () => {
    await put('notes.txt', 'hello');
    await sleep(1_500);
    const { items } = await cluster.kube.list(images, { namespace });
    expect(items.filter(({ metadata }) => metadata.name.includes('notes'))).toEqual([]);
  });
});
