import { createHash } from 'node:crypto';
import {
  closeSync,
  ftruncateSync,
  mkdtempSync,
  openSync,
  readFileSync,
  rmSync,
  writeFileSync,
  writeSync,
} from 'node:fs';
import { join } from 'node:path';
import { gunzipSync } from 'node:zlib';
import { CreateBucketCommand, S3Client as Sdk } from '@aws-sdk/client-s3';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type ObjectStore, startObjectStore } from '#local-cluster/object-store/server.ts';
import { createAddressPolicy } from '#shared/clients/http/address.ts';
import { type HttpClient, createHttpClient } from '#shared/clients/http/client.ts';
import { type S3Client, createS3Client } from '#shared/clients/s3/client.ts';
import { S3Failure } from '#shared/clients/s3/errors.ts';
import { temporaryDirectory } from '#test/support/directory.ts';
import { noise, writeDisk } from '#test/support/disk.ts';
import { hasTools, runTool } from '#test/support/tools.ts';
import type { ExportFormat } from './format.ts';
import { type StoreExport, exportToStore } from './to-store.ts';
import { slowness } from '#test/support/slowness.ts';

const root = temporaryDirectory();
const mib = 1024 * 1024;
const credentials = { accessKeyId: 'tester', secretAccessKey: 's3cret-key-of-tests' };
const bucket = 'exports';

/** Mixed content: holes, zeroes that are not holes, incompressible noise, text, and an odd end. */
const makeVolume = (name: string, size: number): string => {
  const path = join(root, name);
  writeDisk(path, size);
  const file = openSync(path, 'r+');
  writeSync(file, Buffer.alloc(mib), 0, mib, 8 * mib);
  writeSync(file, noise('many', 7 * mib), 0, 7 * mib, 20 * mib);
  writeSync(file, Buffer.from('abc '.repeat(2 * mib)), 0, 8 * mib, 30 * mib);
  closeSync(file);
  return path;
};

describe.skipIf(!hasTools('qemu-img', 'zstd'))('an export to a store', { timeout: 240_000 }, () => {
  let store: ObjectStore;
  let http: HttpClient;
  let s3: S3Client;
  let dir: string;
  let volume: string;
  beforeAll(async () => {
    dir = mkdtempSync(join(root, 'store-'));
    volume = makeVolume('volume.raw', 64 * mib + 512);
    store = await startObjectStore({ dir, credentials: [credentials], region: 'us-east-1' });
    http = createHttpClient({ isRefused: createAddressPolicy(['127.0.0.1']), idleMs: 20_000 });
    s3 = createS3Client({ http, endpoint: store.url, region: store.region, pathStyle: true, credentials });
    const sdk = new Sdk({ endpoint: store.url, region: store.region, forcePathStyle: true, credentials });
    await sdk.send(new CreateBucketCommand({ Bucket: bucket }));
    sdk.destroy();
  });
  afterAll(async () => {
    await http.close();
    await store.close();
    rmSync(dir, { recursive: true, force: true });
  });
  const fetched = async (key: string): Promise<string> => {
    const parts: Buffer[] = [];
    for await (const part of (await s3.get({ bucket, key })).body) parts.push(part);
    const path = join(root, key);
    writeFileSync(path, Buffer.concat(parts));
    return path;
  };
  const exporting = (over: Partial<StoreExport> & { readonly form: ExportFormat }) =>
    exportToStore({
      s3,
      object: { bucket, key: 'object' },
      path: volume,
      hasGuestDigest: true,
      backOff: { retries: 2, onRetry: () => {}, wait: () => Promise.resolve() },
      signal: new AbortController().signal,
      log: () => {},
      onProgress: () => {},
      ...over,
    });

  it.each([
    { format: 'qcow2', compression: 'none' },
    { format: 'qcow2', compression: 'zlib' },
    { format: 'qcow2', compression: 'zlib', level: 6 },
    { format: 'qcow2', compression: 'zstd' },
  ] as const)('makes a sound $format, $compression, of the same disk', async (form) => {
    const result = await exporting({ form });
    const path = await fetched('object');
    expect(JSON.parse(runTool('qemu-img', ['check', '--output=json', '-f', 'qcow2', path]).toString())).toMatchObject({
      'check-errors': 0,
    });
    runTool('qemu-img', ['check', '-f', 'qcow2', path]);
    runTool('qemu-img', ['compare', '-f', 'raw', '-F', 'qcow2', volume, path]);
    const bytes = readFileSync(path);
    expect(result).toMatchObject({
      size: bytes.length,
      virtualSize: 64 * mib + 512,
      digests: { 'guest-sha256': createHash('sha256').update(readFileSync(volume)).digest('hex') },
    });
    expect(result.size).toBeLessThan(form.compression === 'none' ? 18 * mib : 9 * mib);
    expect(await s3.multipart.list(bucket)).toEqual([]);
  });

  it.each([
    { format: 'raw', compression: 'none' },
    { format: 'raw', compression: 'gz' },
    { format: 'raw', compression: 'zst' },
  ] as const)('makes a raw disk, $compression, of the same bytes', async (form) => {
    const result = await exporting({ form });
    const path = await fetched('object');
    const bytes = readFileSync(path);
    const raw =
      form.compression === 'gz'
        ? gunzipSync(bytes)
        : form.compression === 'zst'
          ? runTool('zstd', ['-dc', path])
          : bytes;
    expect(raw.equals(readFileSync(volume))).toBe(true);
    expect(result.digests['sha256']).toBe(createHash('sha256').update(bytes).digest('hex'));
    expect(result.size).toBe(bytes.length);
  });

  /** The client, with some of its part uploads replaced. */
  const withParts = (putPart: (number: number) => Promise<void>): S3Client => ({
    ...s3,
    multipart: {
      ...s3.multipart,
      putPart: async (part) => {
        await putPart(part.number);
        return s3.multipart.putPart(part);
      },
    },
  });
  const unavailable = () => new S3Failure('Unavailable', 'the store is busy');
  const raw: ExportFormat = { format: 'raw', compression: 'none' };

  it('retries parts that the store rejected', async () => {
    const failed = new Set<number>();
    const result = await exporting({
      form: raw,
      s3: withParts((number) =>
        failed.size < 5 && !failed.has(number)
          ? (failed.add(number), Promise.reject(unavailable()))
          : Promise.resolve(),
      ),
    });
    expect(failed.size).toBe(5);
    expect(result.isCrc32Confirmed).toBe(true);
    expect(readFileSync(await fetched('object')).equals(readFileSync(volume))).toBe(true);
  });

  it.each([
    ['a part', unavailable(), 'TargetFailed', true],
    ['the rights', new S3Failure('Denied', 'not allowed'), 'TargetFailed', false],
  ])('keeps the old object and leaves no upload when %s fails finally', async (_what, error, code, retryable) => {
    const key = 'kept';
    await s3.put({ bucket, key, body: Buffer.from('older') });
    const failing = withParts((number) => (number === 5 ? Promise.reject(error) : Promise.resolve()));
    await expect(exporting({ form: raw, object: { bucket, key }, s3: failing })).rejects.toMatchObject({
      code,
      retryable,
    });
    expect(readFileSync(await fetched(key)).toString()).toBe('older');
    expect(await s3.multipart.list(bucket)).toEqual([]);
  });

  it('ends within a second when it is cancelled, and aborts the upload', async () => {
    const cancel = new AbortController();
    const begun = Date.now();
    let cancelled = 0;
    const slow = withParts((number) => {
      if (number === 3) {
        cancelled = Date.now();
        cancel.abort(new Error('enough'));
      }
      return Promise.resolve();
    });
    await expect(exporting({ form: raw, s3: slow, signal: cancel.signal })).rejects.toThrow('enough');
    expect(cancelled).toBeGreaterThan(begun);
    expect((Date.now() - cancelled) / slowness()).toBeLessThan(1000);
    expect(await s3.multipart.list(bucket)).toEqual([]);
  });

  it('aborts the uploads of a killed process, for its own key only', async () => {
    await s3.multipart.begin({ bucket, key: 'object' });
    const other = await s3.multipart.begin({ bucket, key: 'object-of-another' });
    await exporting({ form: { format: 'qcow2', compression: 'none' } });
    expect(await s3.multipart.list(bucket)).toEqual([{ key: 'object-of-another', uploadId: other }]);
    await s3.multipart.abort({ bucket, key: 'object-of-another', uploadId: other });
  });

  it('continues without a checksum of the whole object when the store does not support it', async () => {
    const old: S3Client = {
      ...s3,
      multipart: {
        ...s3.multipart,
        begin: (object) =>
          object.hasCrc32 === true
            ? Promise.reject(new S3Failure('Refused', 'not implemented'))
            : s3.multipart.begin(object),
      },
    };
    const result = await exporting({ form: { format: 'qcow2', compression: 'none' }, s3: old });
    expect(result.isCrc32Confirmed).toBe(false);
  });

  it('considers an upload complete when its last response was lost', async () => {
    let tries = 0;
    const lossy: S3Client = {
      ...s3,
      multipart: {
        ...s3.multipart,
        complete: async (upload) => {
          tries++;
          const done = await s3.multipart.complete(upload);
          if (tries === 1) throw unavailable();
          return done;
        },
      },
    };
    const result = await exporting({ form: raw, s3: lossy });
    expect([tries, result.size]).toEqual([2, 64 * mib + 512]);
  });

  it('writes a small object for a large empty disk', async () => {
    const path = join(root, 'empty.raw');
    const file = openSync(path, 'w');
    ftruncateSync(file, 2 ** 40);
    closeSync(file);
    const result = await exporting({ form: { format: 'qcow2', compression: 'none' }, path, hasGuestDigest: false });
    expect(result).toMatchObject({ virtualSize: 2 ** 40, size: 4 * 65_536, readBytes: 0 });
    runTool('qemu-img', ['compare', '-f', 'raw', '-F', 'qcow2', path, await fetched('object')]);
  });
});
