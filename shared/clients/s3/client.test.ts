import { mkdtemp, rm } from 'node:fs/promises';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { CreateBucketCommand, S3Client as Sdk } from '@aws-sdk/client-s3';
import { type ObjectStore, startObjectStore } from '#local-cluster/object-store/server.ts';
import { createAddressPolicy } from '#shared/clients/http/address.ts';
import { type HttpClient, createHttpClient } from '#shared/clients/http/client.ts';
import { redactData } from '#shared/runtime/redact.ts';
import { type ObjectContent, createS3Client } from './client.ts';
import type { S3Options } from './send.ts';
import { parseS3Credentials } from './place.ts';

const credentials = { accessKeyId: 'tester', secretAccessKey: 's3cret-key-of-tests' };
const temporary = { accessKeyId: 'guest', secretAccessKey: 'other-s3cret', sessionToken: 'token-of-guest' };
const bucket = 'images';

const bytesOf = async ({ body }: ObjectContent): Promise<Buffer> => {
  const parts: Buffer[] = [];
  for await (const part of body) parts.push(part);
  return Buffer.concat(parts);
};

describe('an object store', { timeout: 100_000 }, () => {
  let dir: string;
  let store: ObjectStore;
  let http: HttpClient;
  const clientWith = (over: Partial<S3Options> = {}) =>
    createS3Client({ http, endpoint: store.url, region: store.region, pathStyle: true, credentials, ...over });
  const refusalOf = (work: Promise<unknown>) =>
    work.then(
      () => ({ code: 'done', message: '' }),
      (error: unknown) => error as { code: string; message: string; retryable: boolean },
    );
  beforeAll(async () => {
    dir = await mkdtemp(join(tmpdir(), 'bullion-s3-'));
    store = await startObjectStore({ dir, credentials: [credentials, temporary], region: 'eu-west-9' });
    http = createHttpClient({ isRefused: createAddressPolicy(['127.0.0.1']), idleMs: 20_000 });
    const sdk = new Sdk({ endpoint: store.url, region: store.region, forcePathStyle: true, credentials });
    await sdk.send(new CreateBucketCommand({ Bucket: bucket }));
    await sdk.send(new CreateBucketCommand({ Bucket: 'public', ACL: 'public-read' }));
    sdk.destroy();
  });
  afterAll(async () => {
    await http.close();
    await store.close();
    await rm(dir, { recursive: true, force: true });
  });

  it.each(['plain', 'a/../b/./c', 'ä 漢/🜚', "q?u#e&r=y!'()*+%41", '//double/'])(
    'stores an object under the key %s',
    async (key) => {
      const s3 = clientWith();
      const etag = await s3.put({ bucket, key, body: Buffer.from('0123456789') });
      expect(await s3.head({ bucket, key })).toMatchObject({ size: 10, etag });
      const part = await s3.get({ bucket, key, range: { first: 2, last: 4 }, etag });
      expect([part.size, part.contentRange, (await bytesOf(part)).toString()]).toEqual([10, 'bytes 2-4/10', '234']);
      expect((await bytesOf(await s3.get({ bucket, key }))).toString()).toBe('0123456789');
      expect(await refusalOf(s3.put({ bucket, key, body: Buffer.from('x'), isNew: true }))).toMatchObject({
        code: 'PreconditionFailed',
      });
      await s3.remove({ bucket, key });
      expect(await refusalOf(s3.get({ bucket, key }))).toMatchObject({ code: 'ObjectNotFound' });
      await s3.remove({ bucket, key });
    },
  );

  it('lists every page', async () => {
    const s3 = clientWith();
    const keys = Array.from({ length: 5 }, (_, index) => `list/${index}`);
    for (const key of keys) await s3.put({ bucket, key, body: Buffer.from('x') });
    const observed: string[] = [];
    for await (const { key } of s3.list(bucket, 'list/')) observed.push(key);
    expect(observed).toEqual(keys);
  });

  it('completes a multipart upload, and aborts one', async () => {
    const { multipart, ...s3 } = clientWith();
    const object = { bucket, key: 'parts' };
    const uploadId = await multipart.begin(object);
    const bodies = [Buffer.alloc(5 * 2 ** 20, 'a'), Buffer.from('end')];
    const etags: string[] = [];
    for (const [index, body] of bodies.entries())
      etags.push(await multipart.putPart({ ...object, uploadId, number: index + 1, body }));
    await multipart.complete({ ...object, uploadId, etags });
    expect((await bytesOf(await s3.get(object))).equals(Buffer.concat(bodies))).toBe(true);
    const left = await multipart.begin(object);
    expect(await multipart.list(bucket)).toEqual([{ key: 'parts', uploadId: left }]);
    await multipart.abort({ ...object, uploadId: left });
    expect(await refusalOf(multipart.abort({ ...object, uploadId: left }))).toMatchObject({ code: 'UploadNotFound' });
  });

  it('signs for the region that the store returns', async () => {
    const s3 = clientWith({ region: 'us-east-1' });
    await s3.put({ bucket, key: 'far', body: Buffer.from('x') });
    expect((await s3.head({ bucket, key: 'far' })).size).toBe(1);
  });

  it('sends the bucket in the host name when the store requires that', async () => {
    const hosts: string[] = [];
    // Names below localhost are not resolved everywhere.
    const toStore: HttpClient = {
      ...http,
      get: (call) => {
        hosts.push(call.url.hostname);
        return http.get({ ...call, url: new URL(store.url) });
      },
    };
    const endpoint = store.url.replace('127.0.0.1', 'localhost');
    const s3 = clientWith({ http: toStore, endpoint, pathStyle: false });
    await s3.put({ bucket, key: 'a/../b', body: Buffer.from('hosted') });
    expect((await bytesOf(await s3.get({ bucket, key: 'a/../b' }))).toString()).toBe('hosted');
    expect(new Set(hosts)).toEqual(new Set(['images.localhost']));
  });

  it('uses temporary credentials, and none', async () => {
    const key = 'open';
    await clientWith({ credentials: temporary }).put({ bucket: 'public', key, body: Buffer.from('all') });
    const stranger = clientWith({ credentials: undefined });
    expect((await bytesOf(await stranger.get({ bucket: 'public', key }))).toString()).toBe('all');
    expect(await refusalOf(stranger.get({ bucket, key }))).toMatchObject({ code: 'Denied' });
  });

  it('reports errors without credentials', async () => {
    const wrong = { ...credentials, secretAccessKey: 'wr0ng-s3cret' };
    const get = (over: Partial<S3Options>, where = bucket) =>
      refusalOf(clientWith(over).get({ bucket: where, key: 'absent' }));
    const observed = [
      await get({}),
      await get({}, 'nowhere'),
      await get({ credentials: wrong }),
      await get({ credentials: { ...credentials, accessKeyId: 'n0body' } }),
      await get({ credentials: { ...temporary, sessionToken: 'stale-s3cret' } }),
      await get({ endpoint: 'http://127.0.0.1:1' }),
      await get({ endpoint: 'http://169.254.169.254' }),
    ];
    expect(observed.map(({ code }) => code)).toEqual([
      'ObjectNotFound',
      'BucketNotFound',
      'Denied',
      'Denied',
      'Denied',
      'Unreachable',
      'AddressRefused',
    ]);
    expect(observed[0]?.message).toContain('images/absent');
    expect(observed[2]?.message).toContain('the secret key is wrong');
    const everything = JSON.stringify(observed.map((error) => [error.message, redactData(error)]));
    for (const secret of ['s3cret', 'n0body', 'Signature=']) expect(everything).not.toContain(secret);
  });

  it.each([
    [503, 'text/html', '<html>busy</html>', 'RateLimited'],
    [429, 'text/html', '<html>busy</html>', 'RateLimited'],
    [500, 'application/xml', '<Error><Code>InternalError</Code></Error>', 'Unavailable'],
    [503, 'application/xml', '<Error><Code>SlowDown</Code></Error>', 'RateLimited'],
    [409, 'application/xml', '<Error><Code>ConditionalRequestConflict</Code></Error>', 'Unavailable'],
    [404, 'text/html', 'nginx', 'ObjectNotFound'],
    [403, 'application/xml', '<Error><Code>AccessDenied</Code></Error>', 'Denied'],
    [403, 'application/xml', '<Error><Code>Credential=n0body/2026</Code></Error>', 'Denied'],
    [400, 'text/plain', 'garbage & <', 'Refused'],
  ])('parses the response %i %s %s', async (status, type, body, code) => {
    const server = createServer((_, response) => response.writeHead(status, { 'content-type': type }).end(body));
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    const endpoint = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
    const refusal = await refusalOf(clientWith({ endpoint }).get({ bucket, key: 'a' }));
    expect([refusal.code, refusal.message.includes('n0body')]).toEqual([code, false]);
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
  });
});

describe('credentials of an object store', () => {
  it.each([
    { accessKeyId: 'a', secretKey: 'b\n' },
    { AWS_ACCESS_KEY_ID: 'a', AWS_SECRET_ACCESS_KEY: ' b' },
  ])('are found in %o', (secret) => {
    expect(parseS3Credentials(secret as never)).toMatchObject({ accessKeyId: 'a', secretAccessKey: 'b' });
  });
  it('are reported by name when they are missing', () => {
    expect(() => parseS3Credentials({ accessKeyId: 's3cret' })).toThrow(/^[^3]*secretKey[^3]*$/);
  });
});
