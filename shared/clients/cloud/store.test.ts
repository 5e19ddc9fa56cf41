// Stores of clouds, by each of their credentials: what backups and exports need of a store.
import { afterEach, describe, expect, it } from 'vitest';
import type { CloudAccess } from '#shared/clients/cloud/authorized.ts';
import { audienceOf } from '#shared/clients/cloud/identity.ts';
import { openObjectStore } from '#shared/clients/cloud/store.ts';
import { createAddressPolicy } from '#shared/clients/http/address.ts';
import { createHttpClient } from '#shared/clients/http/client.ts';
import { createBucketStore } from '#shared/clients/store/bucket.ts';
import { isTaken } from '#shared/clients/store/store.ts';
import { createCloudStores } from '#test/support/cloud-stores.ts';
import { type Clouds, client, provider, startClouds, tenant } from '#test/support/clouds.ts';

const closing: (() => Promise<void>)[] = [];
afterEach(async () => {
  await Promise.all(closing.splice(0).map((close) => close()));
});

type Access = Omit<CloudAccess, 'use' | 'secretName'>;
interface Way {
  readonly at: 'googleStorage' | 'azureStorage';
  readonly access: (clouds: Clouds) => Access;
}
const google = { cloud: 'google', provider } as const;
const azure = { cloud: 'azure', tenant, client } as const;
const ways: Readonly<Record<string, Way>> = {
  'Google, by a key file': {
    at: 'googleStorage',
    access: (clouds) => ({ secret: { 'credentials.json': JSON.stringify(clouds.google.keyFile) } }),
  },
  'Google, by an identity': {
    at: 'googleStorage',
    access: ({ podToken }) => ({ identity: google, readPodToken: () => podToken(audienceOf(google)) }),
  },
  'Azure, by a signature': { at: 'azureStorage', access: (clouds) => ({ secret: { sasToken: clouds.azure.sas() } }) },
  'Azure, by an identity': {
    at: 'azureStorage',
    access: ({ podToken }) => ({ identity: azure, readPodToken: () => podToken(audienceOf(azure)) }),
  },
};

const open = async ({ at, access }: Way, over: Partial<CloudAccess> = {}) => {
  const { respond, objects } = createCloudStores();
  const clouds = await startClouds({ store: respond });
  closing.push(clouds.close);
  const http = () => createHttpClient({ isRefused: createAddressPolicy(['127.0.0.0/8']), idleMs: 5000 });
  const place = { http: http(), endpoint: clouds.endpoints[at], region: 'auto', pathStyle: true };
  const tools = { asks: http(), now: Date.now, clouds: clouds.endpoints };
  const { s3, close } = openObjectStore(
    place,
    { secretName: 'store', use: 'write', ...access(clouds), ...over },
    tools,
  );
  closing.push(close);
  return { s3, objects, clouds, store: createBucketStore(s3, 'images') };
};

const key = 'dir/a b&c+ü.json';

describe.each(Object.entries(ways))('a store of %s', (_, way) => {
  it('writes, reads, lists and removes objects', async () => {
    const { store } = await open(way);
    expect(await store.read(key, 100)).toBe(undefined);
    expect(await store.sizeOf(key)).toBe(undefined);
    const revision = await store.write(key, Buffer.from('one'));
    expect(await store.read(key, 100)).toEqual({ bytes: Buffer.from('one'), revision });
    expect(await store.sizeOf(key)).toBe(3);
    for (const name of ['dir/2', 'dir/3', 'dir/4', 'other']) await store.write(name, Buffer.from(name));
    const listed = await Array.fromAsync(store.list('dir/'));
    expect(listed.map((one) => [one.key, one.size])).toEqual([
      ['dir/2', 5],
      ['dir/3', 5],
      ['dir/4', 5],
      [key, 3],
    ]);
    await store.remove(key);
    await store.remove(key);
    expect(await store.sizeOf(key)).toBe(undefined);
  });

  it('writes on conditions, so that of two writers one finds that it was late', async () => {
    const { store } = await open(way);
    const first = await store.write(key, Buffer.from('one'), 'nothing');
    const late = store.write(key, Buffer.from('two'), 'nothing');
    await expect(late).rejects.toSatisfy(isTaken);
    await store.write(key, Buffer.from('two'), { revision: first });
    await expect(store.write(key, Buffer.from('three'), { revision: first })).rejects.toSatisfy(isTaken);
    expect((await store.read(key, 100))?.bytes.toString()).toBe('two');
  });

  it('makes an object of parts, which is not there before its end', async () => {
    const { s3, objects } = await open(way);
    const object = { bucket: 'images', key: 'disk.qcow2' };
    const uploadId = await s3.multipart.begin({ ...object, contentType: 'application/x-qcow2' });
    const parts = [Buffer.alloc(1000, 1), Buffer.alloc(500, 2)];
    const etags = await Promise.all(
      parts.map((body, at) => s3.multipart.putPart({ ...object, uploadId, number: at + 1, body })),
    );
    expect(objects.size).toBe(0);
    const { etag } = await s3.multipart.complete({ ...object, uploadId, etags });
    expect(etag).toBeDefined();
    const { size, contentRange, body } = await s3.get({ ...object, range: { first: 990, last: 1009 } });
    expect([size, contentRange]).toEqual([1500, 'bytes 990-1009/1500']);
    expect(Buffer.concat(await Array.fromAsync(body))).toEqual(Buffer.concat(parts).subarray(990, 1010));
    const again = await s3.multipart.begin(object);
    await s3.multipart.abort({ ...object, uploadId: again });
    expect(await s3.multipart.list('images')).toEqual([]);
  });

  it('reads what it found, and nothing else', async () => {
    const { s3, store } = await open(way);
    await store.write(key, Buffer.from('one'));
    const { etag } = await s3.head({ bucket: 'images', key });
    await store.write(key, Buffer.from('two'));
    await expect(s3.get({ bucket: 'images', key, etag })).rejects.toMatchObject({ code: 'PreconditionFailed' });
  });
});

describe('a store of a cloud', () => {
  it('is not written with a token for reading', async () => {
    const { store } = await open(ways['Google, by a key file']!, { use: 'read' });
    await expect(store.write(key, Buffer.from('one'))).rejects.toMatchObject({ code: 'Denied' });
  });

  it.each<[what: string, way: string, secret: (clouds: Clouds) => Record<string, string>, fault: object]>([
    [
      'a container that does not exist',
      'Azure, by a signature',
      ({ azure: { sas } }) => ({ sasToken: sas() }),
      { code: 'BucketNotFound' },
    ],
    [
      'a signature that permits no writing',
      'Azure, by a signature',
      ({ azure: { sas } }) => ({ sasToken: sas({ sp: 'r' }) }),
      { code: 'CredentialsRefused', message: expect.stringContaining('does not permit to write') },
    ],
    ['a key file that is none', 'Google, by a key file', () => ({ 'key.json': '{}' }), { code: 'InvalidInput' }],
  ])('says what is wrong with %s', async (_, way, secret, fault) => {
    const attempt = async () => {
      const { s3 } = await open({ ...ways[way]!, access: (clouds) => ({ secret: secret(clouds) }) });
      await s3.put({ bucket: 'none', key, body: Buffer.from('one') });
    };
    await expect(attempt()).rejects.toMatchObject(fault);
  });

  it('of Azure has no names that lead to another container', async () => {
    const { s3, clouds } = await open(ways['Azure, by a signature']!);
    await expect(s3.head({ bucket: 'images', key: 'a/../../other' })).rejects.toMatchObject({ code: 'Refused' });
    expect(clouds.requests).toEqual([]);
  });

  it('of Google is that of S3 for HMAC keys', async () => {
    const access = () => ({ secret: { accessKeyId: 'GOOG1', secretKey: 'k' } });
    const { s3, clouds } = await open({ at: 'googleStorage', access });
    await expect(s3.head({ bucket: 'images', key })).rejects.toMatchObject({ code: 'Denied' });
    expect(clouds.requests[0]?.request.headers.authorization).toMatch(/^AWS4-HMAC-SHA256 Credential=GOOG1/);
  });
});
