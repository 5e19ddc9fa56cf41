import { CreateBucketCommand, HeadObjectCommand, S3Client } from '@aws-sdk/client-s3';
import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { createHash, generateKeyPairSync } from 'node:crypto';
import { once } from 'node:events';
import { existsSync, mkdtempSync, readFileSync, readdirSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import { afterEach, describe, expect, it } from 'vitest';
import { TransferProgressedData } from '#events/catalogue.ts';
import { decodeRequest } from '#events/receive.ts';
import { isSignedBy } from '#events/signature.ts';
import { sealSpec, secretFiles } from '#shared/transfer/sealed.ts';
import { type TransferReport, maxReportBytes, parseReport } from '#shared/transfer/report.ts';
import { startObjectStore } from '#local-cluster/object-store/server.ts';
import { exitCodeOf } from '#functions/transfer-job/job.ts';
import { transferJobProgram } from '#test/support/bundles.ts';
import { temporaryDirectory } from '#test/support/directory.ts';
import { convertDisk, noise } from '#test/support/disk.ts';
import { type Answer, type Origin, type OriginRequest, fileAnswer, startOrigin } from '#test/support/origin.ts';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { slowness } from '#test/support/slowness.ts';

const root = temporaryDirectory();
const mib = 1024 * 1024;
const owner = {
  apiVersion: 'hypercloud.tmaxanc.com/v1alpha1',
  kind: 'VirtualMachineImage',
  namespace: 'ns',
  name: 'ubuntu',
  uid: 'uid-1',
};

const closing: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  await Promise.all(closing.splice(0).map((close) => close()));
});

interface Job {
  readonly child: ChildProcess;
  readonly target: string;
  readonly directory: string;
  /** Exit status, report and log after its end. */
  readonly over: Promise<{ status: number | null; report: TransferReport | undefined; log: string }>;
}

const startJob = (origin: Origin, more: { env?: Record<string, string>; spec?: object } = {}): Job => {
  const directory = mkdtempSync(join(root, 'job-'));
  const target = join(directory, 'disk.img');
  const spec = {
    mode: 'import',
    source: { type: 'http', url: `http://user:pa55word@127.0.0.1:${origin.port}/disk?sig=s1gnature` },
    target: { path: target, volumeMode: 'Filesystem', capacityBytes: 64 * mib },
    scratchDir: join(directory, 'scratch'),
    limits: { retries: 1, idleSeconds: 20 },
    allowedAddresses: ['127.0.0.0/8'],
    ...more.spec,
  };
  const child = spawn(process.execPath, [transferJobProgram], {
    stdio: ['ignore', 'pipe', 'inherit'],
    env: {
      BULLION_TRANSFER: JSON.stringify(spec),
      BULLION_OWNER: JSON.stringify(owner),
      POD_NAME: 'import-uid-1-abcde',
      BULLION_TERMINATION_LOG: join(directory, 'report'),
      PATH: process.env['PATH'],
      NODE_COMPILE_CACHE: process.env['NODE_COMPILE_CACHE'],
      ...more.env,
    },
  });
  let log = '';
  child.stdout?.setEncoding('utf8').on('data', (text: string) => {
    log += text;
  });
  const over = once(child, 'close').then(([status]) => {
    const report = join(directory, 'report');
    const text = existsSync(report) ? readFileSync(report, 'utf8') : undefined;
    expect(Buffer.byteLength(text ?? '')).toBeLessThanOrEqual(maxReportBytes);
    return { status: status as number | null, report: parseReport(text), log };
  });
  return { child, target, directory, over };
};

const open = async (respond: (request: OriginRequest) => Answer): Promise<Origin> => {
  const origin = await startOrigin(respond);
  closing.push(() => origin.close());
  return origin;
};

interface Sink {
  readonly url: string;
  readonly events: {
    readonly headers: Record<string, string>;
    readonly data: TransferProgressedData;
    readonly targetExists: boolean;
  }[];
}
type TransferProgressedData = ReturnType<typeof TransferProgressedData.parse>;

/** Collects progress events; `answer` decides whether and when each is acknowledged. */
const openSink = async (target: () => string, answer: 'at once' | 'never' = 'at once'): Promise<Sink> => {
  const events: Sink['events'] = [];
  const server = createServer((request, response) => {
    const parts: Buffer[] = [];
    request.on('data', (part: Buffer) => parts.push(part));
    request.on('end', () => {
      const data = TransferProgressedData.parse(JSON.parse(Buffer.concat(parts).toString()));
      const targetExists = existsSync(target()) || existsSync(`${target()}.partial`);
      events.push({ headers: request.headers as Record<string, string>, data, targetExists });
      if (answer === 'at once') response.writeHead(202).end();
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  closing.push(() => {
    server.closeAllConnections();
    return new Promise((resolve) => server.close(resolve));
  });
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, events };
};

const disk = Buffer.concat([noise('job', 2 * mib), Buffer.alloc(6 * mib)]);
const onlyEvent = (headers: Record<string, string>): Record<string, string> =>
  Object.fromEntries(Object.entries(headers).filter(([name]) => name.startsWith('ce-') || name === 'content-type'));

const serve =
  (bytes: Buffer, more: Partial<Answer> = {}) =>
  (request: OriginRequest) => ({ ...fileAnswer(request, bytes), ...more });

describe('transfer-job', () => {
  it('fills the target, sends its report, and exits 0', async () => {
    const job = startJob(await open(serve(gzipSync(disk))));
    const { status, report, log } = await job.over;
    expect(status).toBe(0);
    expect(report).toMatchObject({
      outcome: 'succeeded',
      inspection: { format: 'raw', compression: 'gz', virtualSize: disk.length },
    });
    expect(readFileSync(job.target).equals(disk)).toBe(true);
    expect(log).not.toMatch(/pa55word|s1gnature/);
    for (const line of log.trim().split('\n')) expect(JSON.parse(line)).toHaveProperty('message');
  });

  it('exits 0 with a failed report when a retry cannot help', async () => {
    const { status, report } = await startJob(await open(() => ({ status: 404 }))).over;
    expect(status).toBe(0);
    expect(report).toMatchObject({ outcome: 'failed', reason: 'SourceNotFound', retryable: false });
    expect(JSON.stringify(report)).not.toMatch(/pa55word|s1gnature/);
  });

  it('exits 1 when a retry may help', async () => {
    const { status, report } = await startJob(await open(() => ({ status: 503 })), { spec: { limits: { retries: 0 } } })
      .over;
    expect(status).toBe(1);
    expect(report).toMatchObject({ outcome: 'failed', reason: 'SourceUnavailable', retryable: true });
  });

  it('looks for programs where it is configured to, wherever a package manager installs them', async () => {
    const directory = mkdtempSync(join(root, 'path-'));
    const raw = join(directory, 'disk.raw');
    writeFileSync(raw, disk);
    const image = convertDisk(raw, 'vmdk', join(directory, 'disk.vmdk'));
    const origin = await open(serve(image));
    const elsewhere = await startJob(origin, { env: { PATH: directory }, spec: { limits: { retries: 0 } } }).over;
    expect(elsewhere.report).toMatchObject({
      outcome: 'failed',
      message: expect.stringContaining('cannot run qemu-img'),
    });
    // Nothing was downloaded for it but the first look.
    expect(elsewhere.report?.receivedBytes).toBeLessThan(image.length / 2);
    const { stdout: program } = spawnSync('which', ['qemu-img'], { encoding: 'utf8' });
    symlinkSync(program.trim(), join(directory, 'qemu-img'));
    const there = await startJob(origin, { env: { PATH: directory } }).over;
    expect(there.report).toMatchObject({ outcome: 'succeeded', inspection: { format: 'vmdk' } });
  });

  it('reports every error of an invalid spec at once', async () => {
    const origin = await open(() => ({}));
    const { status, report } = await startJob(origin, { spec: { mode: 'guess', scratchDir: 7 } }).over;
    expect(status).toBe(0);
    expect(report).toMatchObject({ reason: 'InvalidSpec', message: expect.stringMatching(/mode.*scratchDir/) });
    expect(await startJob(origin, { env: { BULLION_TRANSFER: 'no json' } }).over).toMatchObject({
      status: 0,
      report: { reason: 'InvalidSpec' },
    });
  });

  it.each(['SIGTERM', 'SIGINT'] as const)('exits within a second of %s, and leaves only a report', async (signal) => {
    const job = startJob(await open(serve(disk, { pace: 150 })));
    await expect.poll(() => existsSync(`${job.target}.partial`), { interval: 20 }).toBe(true);
    const begin = Date.now();
    job.child.kill(signal);
    const { status, report } = await job.over;
    expect((Date.now() - begin) / slowness()).toBeLessThan(1000);
    expect(status).toBe(1);
    expect(report).toMatchObject({ outcome: 'failed', reason: 'Cancelled', retryable: true });
    expect(readdirSync(job.directory)).toEqual(['report']);
  });

  it('exports a volume to a store, and deletes its temporary files', async () => {
    const storeDir = mkdtempSync(join(root, 'store-'));
    const key = { accessKeyId: 'tester', secretAccessKey: 's3cret-key-of-tests' };
    const store = await startObjectStore({ dir: storeDir, credentials: [key], region: 'us-east-1' });
    closing.push(() => store.close());
    const sdk = new S3Client({ endpoint: store.url, region: 'us-east-1', forcePathStyle: true, credentials: key });
    closing.push(() => Promise.resolve(sdk.destroy()));
    await sdk.send(new CreateBucketCommand({ Bucket: 'exports' }));
    const secretDir = mkdtempSync(join(root, 'secret-'));
    writeFileSync(join(secretDir, 'accessKeyId'), key.accessKeyId);
    writeFileSync(join(secretDir, 'secretKey'), key.secretAccessKey);
    const path = join(secretDir, 'volume.img');
    writeFileSync(path, disk);
    const place = { endpoint: store.url, region: 'us-east-1', pathStyle: true, bucket: 'exports', key: 'd.qcow2' };
    const exported = {
      form: { format: 'qcow2', compression: 'zlib' },
      object: { ...place, secretDir },
      guestDigest: true,
    };
    const spec = { mode: 'export', source: { type: 'volume', path }, target: undefined, export: exported };
    const origin = await open(serve(disk));
    const { status, report, log } = await startJob(origin, { spec }).over;
    expect(status).toBe(0);
    const object = await sdk.send(new HeadObjectCommand({ Bucket: 'exports', Key: 'd.qcow2' }));
    expect(report).toMatchObject({
      outcome: 'succeeded',
      inspection: { format: 'qcow2', virtualSize: disk.length },
      digests: { 'guest-sha256': createHash('sha256').update(disk).digest('hex') },
      object: { size: object.ContentLength, etag: object.ETag, isConfirmed: true },
    });
    expect(log).not.toContain(key.secretAccessKey);
    const discarded = await startJob(origin, { spec: { ...spec, mode: 'discard', source: { type: 'blank' } } }).over;
    expect(discarded).toMatchObject({ status: 0, report: { outcome: 'succeeded' } });
    await expect(sdk.send(new HeadObjectCommand({ Bucket: 'exports', Key: 'd.qcow2' }))).rejects.toMatchObject({
      name: 'NotFound',
    });
    const broken = await startJob(origin, { spec: { ...spec, export: undefined } }).over;
    expect(broken).toMatchObject({ status: 0, report: { reason: 'InvalidSpec' } });
  });

  it('starts again after it was killed', async () => {
    const origin = await open(serve(disk, { pace: 20 }));
    const first = startJob(origin);
    await expect.poll(() => existsSync(`${first.target}.partial`), { interval: 20 }).toBe(true);
    first.child.kill('SIGKILL');
    expect((await first.over).report).toBeUndefined();
    expect(existsSync(first.target)).toBe(false);
    const target = { path: first.target, volumeMode: 'Filesystem', capacityBytes: 64 * mib };
    const { status } = await startJob(origin, { spec: { target } }).over;
    expect(status).toBe(0);
    expect(readFileSync(first.target).equals(disk)).toBe(true);
    expect(existsSync(`${first.target}.partial`)).toBe(false);
  });
});

describe('what only this run may read', () => {
  it('is in a mounted Secret and not in arguments, environment or log; reports are signed with its key', async () => {
    let target = '';
    const sink = await openSink(() => target);
    const origin = await open(serve(disk, { pace: 100 }));
    const source = {
      type: 'http',
      url: `http://user:plant@127.0.0.1:${origin.port}/disk?sig=plant`,
      secretHeaders: ['X-Token: plant'],
    };
    const directory = mkdtempSync(join(root, 'secret-'));
    const full = {
      mode: 'import',
      source,
      target: { path: join(directory, 'disk.img'), volumeMode: 'Filesystem', capacityBytes: 64 * mib },
      scratchDir: join(directory, 'scratch'),
      allowedAddresses: ['127.0.0.0/8'],
    };
    const { open: shown, sealed } = sealSpec(full);
    const { publicKey, privateKey } = generateKeyPairSync('ed25519');
    writeFileSync(join(directory, secretFiles.sealed), sealed);
    writeFileSync(join(directory, secretFiles.reportKey), privateKey.export({ type: 'pkcs8', format: 'pem' }));
    const env = { BULLION_TRANSFER: shown, BULLION_SECRET_DIR: directory, K_SINK: sink.url };
    const job = startJob(origin, { env });
    target = full.target.path;
    await expect.poll(() => sink.events.length, { interval: 20, timeout: 20_000 }).toBeGreaterThan(0);
    const files = existsSync('/proc/self/environ') ? ['environ', 'cmdline'] : [];
    for (const file of files) expect(readFileSync(`/proc/${job.child.pid}/${file}`, 'utf8')).not.toMatch(/plant/);
    const { status, log } = await job.over;
    expect(status).toBe(0);
    expect(readFileSync(target).equals(disk)).toBe(true);
    expect(log).not.toMatch(/plant|PRIVATE KEY/);
    const key = publicKey.export({ type: 'spki', format: 'der' }).toString('base64');
    const heard = await Promise.all(
      sink.events.map(({ headers, data }) =>
        decodeRequest(
          new Request('http://sink/', { method: 'POST', headers: onlyEvent(headers), body: JSON.stringify(data) }),
        ),
      ),
    );
    expect(heard.map((event) => isSignedBy(event, key))).toEqual(heard.map(() => true));
    expect(JSON.stringify(sink.events)).not.toMatch(/plant/);
  });
});

describe('progress events', () => {
  it('contain owner and progress; the inspection is sent before the target is written', async () => {
    let target = '';
    const sink = await openSink(() => target);
    const origin = await open(serve(disk));
    const job = startJob(origin, { env: { K_SINK: sink.url } });
    target = job.target;
    expect((await job.over).status).toBe(0);
    const first = sink.events.find(({ data }) => data.progress.inspection !== undefined);
    expect(first).toMatchObject({
      targetExists: false,
      data: { owner, progress: { inspection: { virtualSize: disk.length } } },
    });
    for (const { headers, data } of sink.events) {
      expect(headers).toMatchObject({
        'ce-type': 'dev.bullion.transfer.progressed',
        'ce-id': `uid-1.import-uid-1-abcde.${data.progress.sequence}`,
        'ce-source': expect.stringContaining('/apis/hypercloud.tmaxanc.com/v1alpha1/namespaces/ns/'),
      });
    }
    const percents = sink.events.map(({ data }) => data.progress.percent);
    expect(percents).toEqual([...percents].sort((a, b) => a - b));
    expect(sink.events.at(-1)?.data.progress.phase).toBe('Verifying');
  });

  it('are sent at most every two seconds, except when the phase changes', async () => {
    const sink = await openSink(() => '');
    const begin = Date.now();
    const job = startJob(await open(serve(disk, { pace: 40 })), { env: { K_SINK: sink.url } });
    await job.over;
    const phases = new Set(sink.events.map(({ data }) => data.progress.phase)).size;
    // 128 pieces, 40 ms each: about five seconds, or more.
    expect(sink.events.length).toBeLessThanOrEqual(phases + 1 + Math.ceil((Date.now() - begin) / 2000));
    expect(sink.events.length).toBeGreaterThanOrEqual(phases + 2);
    expect(
      sink.events.some(({ data }) => (data.progress.bytesPerSecond ?? 0) > 0 && data.progress.etaSeconds !== undefined),
    ).toBe(true);
  });

  it('that cannot be delivered do not fail the transfer', async () => {
    const job = startJob(await open(serve(disk)), { env: { K_SINK: 'http://127.0.0.1:9/' } });
    expect(await job.over).toMatchObject({ status: 0, report: { outcome: 'succeeded' } });
  });

  it('that are not answered delay it by a few seconds at most', async () => {
    const sink = await openSink(() => '', 'never');
    const begin = Date.now();
    const job = startJob(await open(serve(disk)), { env: { K_SINK: sink.url } });
    expect(await job.over).toMatchObject({ status: 0, report: { outcome: 'succeeded' } });
    expect((Date.now() - begin) / slowness()).toBeLessThan(12_000);
  });
});

describe('exitCodeOf', () => {
  it.each([
    [true, 1],
    [false, 0],
  ] as const)('of a failure that is retryable (%s) is %i', (retryable, status) => {
    expect(exitCodeOf({ outcome: 'failed', reason: 'SourceStalled', message: '', retryable, receivedBytes: 0 })).toBe(
      status,
    );
  });
});
