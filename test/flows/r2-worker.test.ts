// From an object in R2 to a ready image: the store of the local cluster behaves like R2, the Worker for R2 runs under workerd, and notifies
// import-object over HTTP.
import { createHash } from 'node:crypto';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { CreateBucketCommand, DeleteObjectCommand, PutObjectCommand, S3Client } from '@aws-sdk/client-s3';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { z } from 'zod';
import { createApp } from '#functions/import-object/app.ts';
import { writeBootDisk } from '#infra/local/demo/boot-disk.ts';
import { dataSourceKind } from '#shared/api/cdi/data-source.ts';
import type { HyperCloudImage } from '#shared/api/hypercloud/image.ts';
import { createObjectImportDeps, objectImportSettings } from '#shared/object-import/settings.ts';
import { parseConfig } from '#shared/runtime/config.ts';
import { silentLogger } from '#shared/runtime/log.ts';
import { type RunningServer, startServer } from '#shared/runtime/serve.ts';
import { type TestCluster, images, namespace, run, startTestCluster } from '#test/support/cluster.ts';
import { type R2, anR2Message, startR2 } from '#test/support/r2.ts';

const mib = 2 ** 20;
const Bucket = 'images';
const rules = [
  { bucket: Bucket, namespace, storageClassName: 'local' },
  { bucket: Bucket, prefix: 'drop/', namespace, storageClassName: 'local', onDelete: 'delete' },
];

/** The notification of the local store, in the format of R2. */
const inWordsOfR2 = (body: object): object => {
  const { EventName, Key } = body as { readonly EventName: string; readonly Key: string };
  return anR2Message(EventName.includes('Removed') ? 'DeleteObject' : 'PutObject', Key.slice(Bucket.length + 1));
};

describe('objects of R2', { timeout: 180_000 }, () => {
  let dir: string;
  let cluster: TestCluster;
  let client: S3Client;
  let server: RunningServer | undefined;
  let r2: R2;
  let disks: Record<'one' | 'two', Buffer>;
  /** The notifications of R2, until they are released. */
  let unsaid: object[] | undefined;

  const makeDisk = async (name: string, bytes: number): Promise<Buffer> => {
    const raw = join(dir, `${name}.raw`);
    await writeBootDisk(raw, { bytes, dataBytes: mib });
    await run('qemu-img', ['convert', '-f', 'raw', '-O', 'qcow2', raw, join(dir, name)]);
    return readFile(join(dir, name));
  };

  /** Exposed as in production: with its account, and with the token that it shares with the Worker. */
  const openAdmissionServer = async (port: number): Promise<RunningServer> => {
    const config = parseConfig(z.object(objectImportSettings), {
      ...cluster.objectStore.environment,
      ALLOWED_ADDRESSES: '127.0.0.0/8',
      IMPORT_RULES: JSON.stringify(rules),
      KUBECONFIG: join(cluster.dataDir, 'accounts', 'import-object.kubeconfig'),
    });
    const app = createApp({ ...createObjectImportDeps(config, silentLogger), token: 'shared' });
    return (server = await startServer({ app, log: silentLogger, port, drainMs: 1_000 }));
  };

  beforeAll(async () => {
    dir = await mkdtemp(join(tmpdir(), 'bullion-r2-'));
    disks = { one: await makeDisk('one', 8 * mib), two: await makeDisk('two', 16 * mib) };
    // Objects without a notification are not searched for.
    const functionEnvironment = { IMPORT_RULES: JSON.stringify(rules), LIST_SECONDS: '86400' };
    cluster = await startTestCluster({ functionEnvironment });
    const { url, region, accessKeyId, credentialsFile } = cluster.objectStore;
    const [, secretAccessKey = ''] =
      /aws_secret_access_key = (\S+)/.exec(await readFile(credentialsFile, 'utf8')) ?? [];
    client = new S3Client({
      endpoint: url,
      region,
      forcePathStyle: true,
      credentials: { accessKeyId, secretAccessKey },
    });
    await client.send(new CreateBucketCommand({ Bucket }));
    r2 = await startR2((await openAdmissionServer(0)).url);
    cluster.objectStore.notify((body) => {
      if (unsaid === undefined) void r2.notify(inWordsOfR2(body));
      else unsaid.push(inWordsOfR2(body));
    });
  });
  afterAll(async () => {
    await r2?.close();
    await server?.close();
    client?.destroy();
    await cluster?.close();
    await rm(dir, { recursive: true, force: true });
  });

  const put = (Key: string, Body: Buffer) => client.send(new PutObjectCommand({ Bucket, Key, Body }));
  const until = <T>(isSo: () => Promise<T>) => vi.waitFor(isSo, { timeout: 90_000, interval: 100 });
  const versionsOf = async (key: string): Promise<readonly HyperCloudImage[]> => {
    const { items } = await cluster.kube.list(images, { namespace });
    return items.filter(({ metadata }) => metadata.annotations?.['bullion.dev/object-key'] === key);
  };
  const leadsTo = async (name: string) =>
    (await cluster.kube.get(dataSourceKind.type, { namespace, name }))?.spec.source.pvc?.name;
  const ready = (key: string, name: string, disk: Buffer) =>
    until(async () => {
      const sha256 = createHash('sha256').update(disk).digest('hex');
      const image = (await versionsOf(key)).find(({ status }) => status?.digests?.['sha256'] === sha256);
      expect(image?.status?.state).toBe('Available');
      expect(await leadsTo(name)).toBe(image?.status?.children?.volume);
      return image;
    });

  it('become images, byte for byte, whatever their key', async () => {
    const key = 'Ubuntu 24.04 + ü%20#?.qcow2';
    await put(key, disks.one);
    const image = await ready(key, 'ubuntu-24-04-u-20', disks.one);
    expect(image?.status?.virtualSize).toBe(8 * mib);
  });

  it('are not lost while the cluster is unreachable', async () => {
    const { port } = server!;
    await server!.close();
    await put('away.qcow2', disks.one);
    await until(async () => expect(r2.logged().some((line) => line['key'] === 'away.qcow2')).toBe(true));
    await openAdmissionServer(port);
    await ready('away.qcow2', 'away', disks.one);
    expect(r2.deadLetters).toEqual([]);
  });

  it('become new versions when they are replaced, though R2 reports it twice and in the wrong order', async () => {
    await put('jammy.qcow2', disks.one);
    await ready('jammy.qcow2', 'jammy', disks.one);
    unsaid = [];
    await client.send(new DeleteObjectCommand({ Bucket, Key: 'jammy.qcow2' }));
    await put('jammy.qcow2', disks.two);
    await vi.waitFor(() => expect(unsaid).toHaveLength(2));
    const said = unsaid.toReversed();
    unsaid = undefined;
    await r2.notify(...said, ...said);
    await r2.notify(...said);
    await ready('jammy.qcow2', 'jammy', disks.two);
    expect(await versionsOf('jammy.qcow2')).toHaveLength(2);
  });

  it('have their images deleted with them when the rule says so', async () => {
    await put('drop/noble.qcow2', disks.one);
    await ready('drop/noble.qcow2', 'noble', disks.one);
    await client.send(new DeleteObjectCommand({ Bucket, Key: 'drop/noble.qcow2' }));
    await until(async () => {
      expect(await leadsTo('noble')).toBeUndefined();
      expect(await versionsOf('drop/noble.qcow2')).toEqual([]);
    });
  });
});
