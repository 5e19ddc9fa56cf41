import { createHash, randomBytes } from 'node:crypto';
import { lookup } from 'node:dns';
import { mkdtemp, readdir, rm, writeFile } from 'node:fs/promises';
import { Agent } from 'node:http';
import type { LookupFunction } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import {
  AbortMultipartUploadCommand,
  CompleteMultipartUploadCommand,
  CopyObjectCommand,
  CreateBucketCommand,
  CreateMultipartUploadCommand,
  DeleteBucketCommand,
  DeleteObjectCommand,
  DeleteObjectsCommand,
  GetObjectCommand,
  HeadBucketCommand,
  HeadObjectCommand,
  ListMultipartUploadsCommand,
  ListObjectsV2Command,
  ListPartsCommand,
  PutObjectCommand,
  S3Client,
  type S3ClientConfig,
  UploadPartCommand,
} from '@aws-sdk/client-s3';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type ObjectStore, startObjectStore } from './server.ts';

const credentials = { accessKeyId: 'tester', secretAccessKey: 's3cret-key-of-tests' };
const temporary = { accessKeyId: 'guest', secretAccessKey: 'other-s3cret', sessionToken: 'token-of-guest' };
const Bucket = 'images';
const mib = 2 ** 20;

describe('the object store, asked by the AWS SDK', { timeout: 240_000 }, () => {
  let dir: string;
  let store: ObjectStore;
  let s3: S3Client;
  let now: () => number = Date.now;
  const open: S3Client[] = [];
  const clientWith = (over: Partial<S3ClientConfig>): S3Client => {
    const client = new S3Client({
      endpoint: store.url,
      region: store.region,
      forcePathStyle: true,
      credentials,
      maxAttempts: 1,
      ...over,
    });
    open.push(client);
    return client;
  };
  const start = () =>
    startObjectStore({ dir: join(dir, 'store'), credentials: [credentials, temporary], now: () => now() });
  beforeAll(async () => {
    dir = await mkdtemp(join(tmpdir(), 'bullion-store-'));
    store = await start();
    s3 = clientWith({});
    await s3.send(new CreateBucketCommand({ Bucket }));
  });
  afterAll(async () => {
    for (const client of open) client.destroy();
    await store.close();
    await rm(dir, { recursive: true, force: true });
  });
  const put = (Key: string, Body: string | Buffer, more: object = {}) =>
    s3.send(new PutObjectCommand({ Bucket, Key, Body, ...more }));
  const text = async (Key: string, more: object = {}, client = s3) =>
    (await client.send(new GetObjectCommand({ Bucket, Key, ...more }))).Body?.transformToString();
  const nameOf = (work: Promise<unknown>): Promise<string> =>
    work.then(
      () => 'done',
      (error: Error) => error.name,
    );

  it.each([
    'plain',
    'a/../b',
    './x',
    'with space+plus',
    'ä/ß/漢字/🜚',
    "q?u#e&r=y!'()*",
    'trailing/',
    '//double',
    '%41',
    '<&">\'',
  ])('keeps an object under the key %s', async (key) => {
    await put(key, `content of ${key}`);
    expect(await text(key)).toBe(`content of ${key}`);
    const { Contents = [] } = await s3.send(new ListObjectsV2Command({ Bucket, Prefix: key }));
    expect(Contents.map(({ Key }) => Key)).toContain(key);
    await s3.send(new DeleteObjectCommand({ Bucket, Key: key }));
    expect(await nameOf(text(key))).toBe('NoSuchKey');
  });

  it('sends back what was put with an object, and the checksum that was checked', async () => {
    const { ETag, ChecksumCRC32 } = await put('meta', 'hello', { ContentType: 'text/x-y', Metadata: { one: '1' } });
    expect(ETag).toBe(`"${createHash('md5').update('hello').digest('hex')}"`);
    const head = await s3.send(new HeadObjectCommand({ Bucket, Key: 'meta', ChecksumMode: 'ENABLED' }));
    expect(head).toMatchObject({
      ContentLength: 5,
      ContentType: 'text/x-y',
      Metadata: { one: '1' },
      ETag,
      ChecksumCRC32,
    });
    expect(ChecksumCRC32).toBe('NhCmhg==');
    expect(await nameOf(s3.send(new HeadObjectCommand({ Bucket, Key: 'absent' })))).toBe('NotFound');
    expect(await nameOf(s3.send(new GetObjectCommand({ Bucket: 'absent', Key: 'a' })))).toBe('NoSuchBucket');
  });

  it.each(['CRC32', 'CRC32C', 'SHA1', 'SHA256'] as const)(
    'takes a stream with a %s behind it, and refuses a wrong one',
    async (algorithm) => {
      async function* chunks() {
        yield Buffer.from('one ');
        yield Buffer.alloc(100_000, 'x');
      }
      const body = Readable.from(chunks());
      await s3.send(
        new PutObjectCommand({
          Bucket,
          Key: 'streamed',
          Body: body,
          ContentLength: 100_004,
          ChecksumAlgorithm: algorithm,
        }),
      );
      expect((await text('streamed'))?.length).toBe(100_004);
      const wrong = Buffer.alloc({ CRC32: 4, CRC32C: 4, SHA1: 20, SHA256: 32 }[algorithm]).toString('base64');
      expect(await nameOf(put('bad', 'content', { [`Checksum${algorithm}`]: wrong }))).toBe('BadDigest');
      expect(await nameOf(text('bad'))).toBe('NoSuchKey');
    },
  );

  it('serves ranges and conditions', async () => {
    const { ETag = '' } = await put('range', '0123456789');
    const ask = (more: object) => text('range', more);
    expect(await ask({ Range: 'bytes=2-4' })).toBe('234');
    expect(await ask({ Range: 'bytes=7-' })).toBe('789');
    expect(await ask({ Range: 'bytes=-2' })).toBe('89');
    expect(await ask({ Range: 'bytes=8-99' })).toBe('89');
    expect(await nameOf(ask({ Range: 'bytes=10-' }))).toBe('InvalidRange');
    expect(await ask({ Range: 'bytes=0-0', IfMatch: ETag })).toBe('0');
    expect(await nameOf(ask({ IfMatch: '"other"' }))).toBe('PreconditionFailed');
    await expect(ask({ IfNoneMatch: ETag })).rejects.toMatchObject({ $metadata: { httpStatusCode: 304 } });
    expect(await nameOf(ask({ IfUnmodifiedSince: new Date(0) }))).toBe('PreconditionFailed');
    expect(await nameOf(put('range', 'new', { IfNoneMatch: '*' }))).toBe('PreconditionFailed');
    expect(await nameOf(put('range', 'new', { IfMatch: '"other"' }))).toBe('PreconditionFailed');
    expect(await ask({})).toBe('0123456789');
    await put('range', 'new', { IfMatch: ETag });
    expect(await ask({})).toBe('new');
  });

  it('lists in the order of bytes, page by page, folded at a delimiter', async () => {
    await s3.send(new CreateBucketCommand({ Bucket: 'listed' }));
    const keys = ['a', 'b/1', 'b/2', 'b/c/3', 'b0', 'c', 'ä', '\u{1f71a}', '\uff5e'];
    for (const Key of keys) await s3.send(new PutObjectCommand({ Bucket: 'listed', Key, Body: Key }));
    const walk = async (more: object): Promise<string[]> => {
      const seen: string[] = [];
      for (let token: string | undefined, more_ = true; more_;) {
        const page = await s3.send(
          new ListObjectsV2Command({ Bucket: 'listed', MaxKeys: 2, ContinuationToken: token, ...more }),
        );
        seen.push(
          ...(page.Contents ?? []).map(({ Key = '' }) => Key),
          ...(page.CommonPrefixes ?? []).map(({ Prefix = '' }) => Prefix),
        );
        token = page.NextContinuationToken;
        more_ = page.IsTruncated === true;
      }
      return seen;
    };
    const byBytes = keys.toSorted((a, b) => Buffer.compare(Buffer.from(a), Buffer.from(b)));
    expect(await walk({})).toEqual(byBytes);
    expect(await walk({ EncodingType: 'url', Prefix: 'b/', Delimiter: '/' })).toEqual(
      ['b/1', 'b/2', 'b/c/'].map(encodeURIComponent),
    );
    expect((await walk({ Delimiter: '/' })).toSorted()).toEqual(
      ['a', 'b/', 'b0', 'c', 'ä', '\u{1f71a}', '\uff5e'].toSorted(),
    );
    expect(await walk({ StartAfter: 'b/2', Prefix: 'b' })).toEqual(['b/c/3', 'b0']);
    expect(await nameOf(s3.send(new DeleteBucketCommand({ Bucket: 'listed' })))).toBe('BucketNotEmpty');
    const Objects = keys.map((Key) => ({ Key }));
    const { Deleted } = await s3.send(new DeleteObjectsCommand({ Bucket: 'listed', Delete: { Objects } }));
    expect(Deleted?.length).toBe(keys.length);
    await s3.send(new DeleteBucketCommand({ Bucket: 'listed' }));
    expect(await nameOf(s3.send(new HeadBucketCommand({ Bucket: 'listed' })))).toBe('NotFound');
  });

  it('puts parts together, lists them, and forgets them when aborted', async () => {
    const Key = 'large';
    const parts = [randomBytes(5 * mib), randomBytes(5 * mib), randomBytes(10)];
    const { UploadId } = await s3.send(new CreateMultipartUploadCommand({ Bucket, Key }));
    const etags: { PartNumber: number; ETag: string | undefined }[] = [];
    for (const [index, Body] of parts.entries()) {
      const PartNumber = index + 1;
      const { ETag } = await s3.send(new UploadPartCommand({ Bucket, Key, UploadId, PartNumber, Body }));
      etags.push({ PartNumber, ETag });
    }
    const listed = await s3.send(new ListPartsCommand({ Bucket, Key, UploadId, MaxParts: 2 }));
    expect([listed.IsTruncated, listed.Parts?.map(({ Size }) => Size)]).toEqual([true, [5 * mib, 5 * mib]]);
    const complete = (Parts: typeof etags) =>
      s3.send(new CompleteMultipartUploadCommand({ Bucket, Key, UploadId, MultipartUpload: { Parts } }));
    expect(await nameOf(complete(etags.toReversed()))).toBe('InvalidPartOrder');
    expect(await nameOf(complete([{ PartNumber: 1, ETag: '"no"' }]))).toBe('InvalidPart');
    expect(await nameOf(complete([etags[2]!, { ...etags[2]!, PartNumber: 4 }]))).toBe('InvalidPart');
    const { ETag } = await complete(etags);
    const md5 = (data: Buffer) => createHash('md5').update(data).digest();
    expect(ETag).toBe(`"${md5(Buffer.concat(parts.map(md5))).toString('hex')}-3"`);
    const { Body } = await s3.send(new GetObjectCommand({ Bucket, Key }));
    expect(Buffer.concat(parts).equals(Buffer.from((await Body?.transformToByteArray()) ?? []))).toBe(true);
    expect(await nameOf(complete(etags))).toBe('NoSuchUpload');
    const other = await s3.send(new CreateMultipartUploadCommand({ Bucket, Key }));
    await s3.send(new UploadPartCommand({ Bucket, Key, UploadId: other.UploadId, PartNumber: 1, Body: 'x' }));
    const uploads = await s3.send(new ListMultipartUploadsCommand({ Bucket }));
    expect(uploads.Uploads?.map(({ UploadId: id }) => id)).toEqual([other.UploadId]);
    await s3.send(new AbortMultipartUploadCommand({ Bucket, Key, UploadId: other.UploadId }));
    expect((await s3.send(new ListMultipartUploadsCommand({ Bucket }))).Uploads ?? []).toEqual([]);
    expect((await readdir(join(dir, 'store', Bucket, 'uploads'))).length).toBe(0);
  });

  it('copies', async () => {
    await put('from', 'copied', { Metadata: { a: 'b' } });
    await s3.send(new CopyObjectCommand({ Bucket, Key: 'to', CopySource: `${Bucket}/from` }));
    expect(await text('to')).toBe('copied');
    expect((await s3.send(new HeadObjectCommand({ Bucket, Key: 'to' }))).Metadata).toEqual({ a: 'b' });
  });

  it('lets in who signs rightly, and tells the others why not', async () => {
    await put('guarded', 'mine');
    const as = (over: Partial<S3ClientConfig>) => nameOf(text('guarded', {}, clientWith(over)));
    expect(await as({ credentials: temporary })).toBe('done');
    expect(await as({ credentials: { ...temporary, sessionToken: 'stale' } })).toBe('InvalidToken');
    expect(await as({ credentials: { ...credentials, secretAccessKey: 'wrong' } })).toBe('SignatureDoesNotMatch');
    expect(await as({ credentials: { ...credentials, accessKeyId: 'nobody' } })).toBe('InvalidAccessKeyId');
    expect(await as({ region: 'eu-west-9' })).toBe('AuthorizationHeaderMalformed');
    expect((await fetch(`${store.url}/${Bucket}/guarded`)).status).toBe(403);
    now = () => Date.now() + 3_600_000;
    expect(await as({})).toBe('RequestTimeTooSkewed');
    now = Date.now;
  });

  it('shows a public bucket to strangers, its objects alone', async () => {
    await s3.send(new CreateBucketCommand({ Bucket: 'public', ACL: 'public-read' }));
    await s3.send(new PutObjectCommand({ Bucket: 'public', Key: 'open', Body: 'all' }));
    expect(await (await fetch(`${store.url}/public/open`)).text()).toBe('all');
    expect((await fetch(`${store.url}/public?list-type=2`)).status).toBe(403);
    expect((await fetch(`${store.url}/public/open`, { method: 'PUT', body: 'x' })).status).toBe(403);
  });

  it('understands the bucket in the host name', async () => {
    await put('hosted', 'by name');
    const toLoopback: LookupFunction = (_name, options, callback) => lookup('127.0.0.1', options, callback);
    const httpAgent = new Agent({ lookup: toLoopback });
    const endpoint = store.url.replace('127.0.0.1', 'localhost');
    const client = clientWith({ endpoint, forcePathStyle: false, requestHandler: { httpAgent } });
    expect(await text('hosted', {}, client)).toBe('by name');
    httpAgent.destroy();
  });

  it('says so where it cannot do what is asked', async () => {
    const refused = await s3
      .send(new GetObjectCommand({ Bucket, Key: 'x', VersionId: '1' }))
      .catch((error: { name: string }) => error.name);
    expect(refused).toBe('NotImplemented');
  });

  it('has everything again after a restart, and nothing of what was half done', async () => {
    await put('kept', 'safe');
    const blobs = join(dir, 'store', Bucket, 'blobs');
    await writeFile(join(blobs, 'half'), 'of an upload');
    await store.close();
    store = await start();
    s3 = clientWith({});
    expect(await text('kept')).toBe('safe');
    expect(await readdir(blobs)).not.toContain('half');
  });
});
