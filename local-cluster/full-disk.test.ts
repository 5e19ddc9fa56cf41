// The cluster's own stores on a disk that fills up, and has room again later: a file system in memory, where this machine lets one be mounted.
import { spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, readdirSync, rmSync, statfsSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeEach, describe, expect, it } from 'vitest';
import { createStore as createObjectStore } from '#local-cluster/object-store/store.ts';
import { createStore } from '#local-cluster/api-server/store/store.ts';
import { isApiError } from '#local-cluster/api-server/status/status.ts';
import { startObjectStore } from '#local-cluster/object-store/server.ts';

const disk = mkdtempSync(join(tmpdir(), 'full-disk-'));
const mount = () => spawnSync('mount', ['-t', 'tmpfs', '-o', 'size=4m', 'tmpfs', disk]).status === 0;
const unmount = () => spawnSync('umount', [disk]);
const canMount = mount();
if (!canMount) console.warn('a full disk is not tried: no file system can be mounted here');

const filler = join(disk, 'filler');
/** Takes all the room that is left, to the last block. */
const fill = () => {
  const { bavail, bsize } = statfsSync(disk);
  writeFileSync(filler, Buffer.alloc(bavail * bsize));
};
const makeRoom = () => rmSync(filler);

const keyOf = (name: string) => ({ collection: 'configmaps', namespace: 'default', name });
const anObject = (name: string, bytes: number) => ({
  apiVersion: 'v1',
  kind: 'ConfigMap',
  metadata: { name, namespace: 'default' },
  data: { value: 'x'.repeat(bytes) },
});

describe.skipIf(!canMount)('on a full disk', { timeout: 60_000 }, () => {
  beforeEach(() => {
    unmount();
    mount();
  });
  afterAll(() => {
    unmount();
    rmSync(disk, { recursive: true, force: true });
  });

  it('the API server refuses writes with words, goes on reading, and writes again once there is room', async () => {
    const store = createStore({ file: join(disk, 'state.db'), historyLimit: 2 });
    for (let count = 0; count < 20; count += 1) store.create(keyOf(`a${count}`), anObject(`a${count}`, 10_000));
    fill();
    const refusals = Array.from({ length: 40 }, (_, count) => {
      try {
        store.create(keyOf(`b${count}`), anObject(`b${count}`, 100_000));
        return undefined;
      } catch (error) {
        return isApiError(error) ? error.status : error;
      }
    });
    expect(refusals.at(-1)).toMatchObject({
      code: 507,
      message: expect.stringMatching(/disk under .* is full/) as string,
    });
    // Longer than the pause between two flushes: what they meet ends no process.
    await sleep(2_500);
    expect(store.get(keyOf('a7'))?.object()['data']).toEqual(anObject('a7', 10_000).data);
    expect(store.page({ collection: 'configmaps', limit: 100 }).entries.length).toBeGreaterThanOrEqual(20);
    makeRoom();
    const written = store.create(keyOf('later'), anObject('later', 100_000));
    expect(written?.version).toBe(store.version());
    await sleep(1_500);
    store.close();
    const again = createStore({ file: join(disk, 'state.db') });
    expect(again.get(keyOf('later'))?.version).toBe(written?.version);
    again.close();
  });

  it('the object store says so, and leaves nothing of what it could not begin', async () => {
    const store = await createObjectStore(disk);
    await store.putBucket('images', { isPublic: true, isNew: true });
    const { path } = store.newBlob('images');
    fill();
    const upload = { id: crypto.randomUUID(), key: 'disk', started: '', headers: { note: 'x'.repeat(10_000) } };
    await expect(store.putUpload('images', upload)).rejects.toMatchObject({ code: 'ENOSPC' });
    expect(readdirSync(join(disk, 'images/uploads'))).toEqual([]);
    expect(existsSync(path)).toBe(false);
    expect(await store.bucket('images')).toMatchObject({ isPublic: true });
    makeRoom();
    await store.putUpload('images', upload);
    expect(await store.uploads('images')).toHaveLength(1);
  });

  it('the object store answers reads, and writes with 507', async () => {
    const credentials = [{ accessKeyId: 'reader', secretAccessKey: 'secret' }];
    const { S3Client, CreateBucketCommand, GetObjectCommand, PutObjectCommand } = await import('@aws-sdk/client-s3');
    const server = await startObjectStore({ dir: disk, credentials });
    const options = { endpoint: server.url, region: server.region, forcePathStyle: true, maxAttempts: 1 };
    const client = new S3Client({ ...options, credentials: credentials[0]! });
    const [object, Bucket] = [{ Bucket: 'images', Key: 'disk' }, 'images'];
    await client.send(new CreateBucketCommand({ Bucket }));
    await client.send(new PutObjectCommand({ ...object, Body: 'kept' }));
    fill();
    const put = client.send(new PutObjectCommand({ Bucket, Key: 'other', Body: 'x'.repeat(100_000) }));
    await expect(put).rejects.toMatchObject({
      name: 'InsufficientStorage',
      $metadata: { httpStatusCode: 507 },
      message: expect.stringContaining('make room') as string,
    });
    expect(readdirSync(join(disk, 'images/blobs'))).toHaveLength(1);
    expect(await (await client.send(new GetObjectCommand(object))).Body?.transformToString()).toBe('kept');
    makeRoom();
    await client.send(new PutObjectCommand({ Bucket, Key: 'other', Body: 'x'.repeat(100_000) }));
    client.destroy();
    await server.close();
  });
});

it('folders of uploads that never began, or have ended, go when the object store starts', async () => {
  const dir = mkdtempSync(join(tmpdir(), 'uploads-'));
  const store = await createObjectStore(dir);
  await store.putBucket('images', { isPublic: false, isNew: true });
  await store.putUpload('images', { id: crypto.randomUUID(), key: 'disk', started: '', headers: {} });
  const [open] = readdirSync(join(dir, 'images/uploads'));

  mkdirSync(join(dir, 'images/uploads', crypto.randomUUID(), 'parts'), { recursive: true });
  await createObjectStore(dir);
  expect(readdirSync(join(dir, 'images/uploads'))).toEqual([open]);
  rmSync(dir, { recursive: true });
});
