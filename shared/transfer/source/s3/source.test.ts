import { createHash, randomBytes } from 'node:crypto';
import { mkdtempSync, readFileSync, rmSync, writeFileSync, mkdirSync } from 'node:fs';
import { type IncomingMessage, type ServerResponse, createServer, request as forward } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { CreateBucketCommand, PutObjectCommand, S3Client } from '@aws-sdk/client-s3';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { type ObjectStore, startObjectStore } from '#local-cluster/object-store/server.ts';
import { runTransfer } from '#shared/transfer/run.ts';
import { type S3Source, TransferSpec } from '#shared/transfer/spec.ts';

const credentials = { accessKeyId: 'tester', secretAccessKey: 's3cret-key-of-tests' };
const bucket = 'images';
const key = 'dir/../disk ä.img';
const mib = 2 ** 20;
const disk = Buffer.concat([randomBytes(3 * mib), Buffer.alloc(4 * mib), randomBytes(5 * mib)]);

type How = 'cut' | 'slow' | 'answered' | 'pass';
/** A proxy in front of the store, which may spoil an answer. */
type Spoil = (request: IncomingMessage, response: ServerResponse) => How | Promise<How>;

describe('an image in an object store', { timeout: 240_000 }, () => {
  let dir: string;
  let store: ObjectStore;
  let sdk: S3Client;
  let spoil: Spoil = () => 'pass';
  let observed: IncomingMessage[] = [];
  const forwardTo = (incoming: IncomingMessage, response: ServerResponse, how: How): void => {
    const { method, url: path, headers } = incoming;
    const onward = forward({ host: '127.0.0.1', port: new URL(store.url).port, method, path, headers }, (answer) => {
      response.writeHead(answer.statusCode ?? 500, answer.headers);
      if (how === 'slow' && Number(answer.headers['content-length']) > mib) {
        let at = 0;
        const timer = setInterval(() => response.write(disk.subarray(at, (at += 512))), 50);
        response.on('close', () => clearInterval(timer));
        answer.destroy();
        return;
      }
      let sent = 0;
      answer.on('data', (chunk: Buffer) => {
        response.write(chunk);
        sent += chunk.length;
        if (how === 'cut' && sent > mib) response.destroy();
      });
      answer.on('end', () => response.end());
    });
    incoming.pipe(onward);
  };
  const proxy = createServer((incoming, response) => {
    observed.push(incoming);
    void Promise.resolve(spoil(incoming, response)).then((how) => {
      if (how !== 'answered') forwardTo(incoming, response, how);
    });
  });
  const put = (Key: string, Body: Buffer) => sdk.send(new PutObjectCommand({ Bucket: bucket, Key, Body }));
  beforeAll(async () => {
    dir = mkdtempSync(join(tmpdir(), 'bullion-s3-source-'));
    store = await startObjectStore({ dir: join(dir, 'store'), credentials: [credentials] });
    await new Promise<void>((resolve) => proxy.listen(0, '127.0.0.1', resolve));
    sdk = new S3Client({ endpoint: store.url, region: store.region, forcePathStyle: true, credentials });
    await sdk.send(new CreateBucketCommand({ Bucket: bucket }));
    await put(key, disk);
    mkdirSync(join(dir, 'secret'));
    writeFileSync(join(dir, 'secret', 'accessKeyId'), credentials.accessKeyId);
    writeFileSync(join(dir, 'secret', 'secretKey'), `${credentials.secretAccessKey}\n`);
  });
  afterAll(async () => {
    sdk.destroy();
    proxy.closeAllConnections();
    await new Promise((resolve) => proxy.close(resolve));
    await store.close();
    rmSync(dir, { recursive: true, force: true });
  });
  beforeEach(() => {
    spoil = () => 'pass';
    observed = [];
  });

  const transfer = async (
    over: Partial<S3Source> = {},
    mode: 'import' | 'inspect' = 'import',
    limits: Partial<TransferSpec['limits']> = {},
  ) => {
    const own = mkdtempSync(join(dir, 'case-'));
    const target = join(own, 'disk.img');
    const spec = TransferSpec.parse({
      mode,
      source: {
        type: 's3',
        endpoint: `http://127.0.0.1:${(proxy.address() as AddressInfo).port}`,
        region: store.region,
        pathStyle: true,
        bucket,
        key,
        secretDir: join(dir, 'secret'),
        secretName: 'object-store',
        ...over,
      },
      target: { path: target, volumeMode: 'Filesystem', capacityBytes: 64 * mib },
      scratchDir: join(own, 'scratch'),
      limits: { idleSeconds: 20, totalSeconds: 240, retries: 2, ...limits },
      allowedAddresses: ['127.0.0.0/8'],
    });
    const lines: unknown[] = [];
    const report = await runTransfer(spec, {
      run: 'run-1',
      signal: new AbortController().signal,
      send: () => Promise.resolve(),
      log: (message, facts) => lines.push([message, facts]),
    });
    const told = JSON.stringify([report, lines, spec]);
    expect(told).not.toContain(credentials.secretAccessKey);
    return { report, target };
  };
  const sha256 = createHash('sha256').update(disk).digest('hex');

  it('is imported unchanged', async () => {
    const { report, target } = await transfer();
    expect(report).toMatchObject({ outcome: 'succeeded', digests: { sha256 }, inspection: { size: disk.length } });
    expect(readFileSync(target).equals(disk)).toBe(true);
  });

  it('is inspected by its first bytes', async () => {
    const { report } = await transfer({}, 'inspect');
    expect(report).toMatchObject({ outcome: 'succeeded', inspection: { format: 'raw', virtualSize: disk.length } });
    expect(report.receivedBytes).toBeLessThan(mib);
  });

  it('has stalled below the minimum rate', async () => {
    spoil = () => 'slow';
    const { report } = await transfer({}, 'import', { retries: 0, floor: { bytes: mib, seconds: 0.5 } });
    expect(report).toMatchObject({
      reason: 'SourceStalled',
      message: expect.stringMatching(
        /^127\.0\.0\.1:\d+ sent \d+ bytes in \d+ seconds: at least 1048576 in 0\.5 are needed/,
      ),
    });
  });

  it('is resumed after a cut, at its position and only if it is unchanged', async () => {
    let cuts = 0;
    spoil = ({ headers }) => (headers.range === 'bytes=0-262143' || cuts++ > 1 ? 'pass' : 'cut');
    const { report, target } = await transfer();
    expect(report).toMatchObject({ outcome: 'succeeded', digests: { sha256 } });
    expect(readFileSync(target).equals(disk)).toBe(true);
    const resumed = observed
      .map(({ headers }) => headers)
      .filter(({ range }) => range !== undefined && range !== 'bytes=0-262143');
    expect(resumed.length).toBeGreaterThan(0);
    expect(resumed.every((headers) => headers['if-match'] !== undefined)).toBe(true);
    expect(report.receivedBytes).toBeLessThan(disk.length + 4 * mib);
  });

  it('is read again when it was replaced meanwhile', async () => {
    const other = randomBytes(2 * mib);
    await put('changing', disk);
    let reads = 0;
    spoil = async ({ headers }) => {
      if (headers.range === 'bytes=0-262143') return 'pass';
      reads += 1;
      if (reads === 2) await put('changing', other);
      return reads === 1 ? 'cut' : 'pass';
    };
    const { report, target } = await transfer({ key: 'changing' });
    expect(report.outcome).toBe('succeeded');
    expect(readFileSync(target).equals(other)).toBe(true);
  });

  it('is retried while the store is busy', async () => {
    let refusals = 0;
    spoil = (_, response) => {
      if (refusals++ > 0) return 'pass';
      response.writeHead(503, { 'content-type': 'application/xml' }).end('<Error><Code>SlowDown</Code></Error>');
      return 'answered';
    };
    expect((await transfer()).report.outcome).toBe('succeeded');
  });

  it.each<[string, Partial<S3Source>, object]>([
    ['a missing object', { key: 'absent' }, { reason: 'SourceNotFound', retryable: false }],
    ['a missing bucket', { bucket: 'absent' }, { reason: 'SourceNotFound', retryable: false }],
    ['no credentials', { secretDir: undefined }, { reason: 'SourceForbidden', retryable: false }],
    ['the store is down', { endpoint: 'http://127.0.0.1:1' }, { reason: 'SourceUnreachable', retryable: true }],
    [
      'a forbidden address',
      { endpoint: 'http://169.254.169.254' },
      { reason: 'SourceAddressRefused', retryable: false },
    ],
  ])('fails with a reason: %s', async (_, over, expected) => {
    const { report } = await transfer(over);
    expect(report).toMatchObject({ outcome: 'failed', ...expected });
  });

  it('fails with a reason: wrong credentials, or a missing Secret', async () => {
    const folder = (name: string, files: Record<string, string>) => {
      mkdirSync(join(dir, name));
      for (const [file, content] of Object.entries(files)) writeFileSync(join(dir, name, file), content);
      return { secretDir: join(dir, name) };
    };
    const wrong = await transfer(folder('wrong', { accessKeyId: 'tester', secretKey: 'no' }));
    expect(wrong.report).toMatchObject({
      reason: 'SourceForbidden',
      message: expect.stringContaining('secret key is wrong'),
    });
    const missing = await transfer(folder('missing', {}));
    expect(missing.report).toMatchObject({
      reason: 'SourceForbidden',
      retryable: true,
      message: expect.stringContaining('object-store'),
    });
    const odd = await transfer(folder('odd', { password: 'x' }));
    expect(odd.report).toMatchObject({ reason: 'InvalidSpec', message: expect.stringContaining('accessKeyId') });
  });

  it('is rejected when it is empty', async () => {
    await put('empty', Buffer.alloc(0));
    expect((await transfer({ key: 'empty' })).report).toMatchObject({ outcome: 'failed', retryable: false });
  });
});
