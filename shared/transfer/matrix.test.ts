// Formats by sources, sinks and failures in between: the result is the same disk, or nothing at all.
import { existsSync, mkdirSync, mkdtempSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { gzipSync, zstdCompressSync } from 'node:zlib';
import { CreateBucketCommand, PutObjectCommand, S3Client } from '@aws-sdk/client-s3';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type ObjectStore, startObjectStore } from '#local-cluster/object-store/server.ts';
import { TransferReport } from '#shared/transfer/report.ts';
import { runTransfer } from '#shared/transfer/run.ts';
import { TransferSpec } from '#shared/transfer/spec.ts';
import { temporaryDirectory } from '#test/support/directory.ts';
import { convertDisk, noise, writeDisk } from '#test/support/disk.ts';
import { eagerSaving } from '#test/support/eager-saving.ts';
import { type Origin, fileAnswer, startOrigin } from '#test/support/origin.ts';
import { pushDisk } from '#test/support/registry/images.ts';
import { type TestRegistry, hasRegistry, startRegistry } from '#test/support/registry/server.ts';
import { type ShakyLine, startShakyLine } from '#test/support/shaky-line.ts';
import { drawn } from '#test/support/random.ts';
import { shortWait } from '#test/support/short-wait.ts';
import { hasTools, runTool } from '#test/support/tools.ts';
import { sha256 } from '#test/support/transfer.ts';

const mib = 1024 * 1024;
const root = temporaryDirectory();
const diskBytes = 24 * mib;

const formats = [
  'raw',
  'raw.gz',
  'raw.xz',
  'raw.zst',
  'qcow2',
  'zlib.qcow2',
  'zstd.qcow2',
  'zlib.qcow2.gz',
  'vmdk',
  'vdi',
  'vhd',
  'fixed.vhd',
  'vhdx',
] as const;
type Format = (typeof formats)[number];
const sources = ['http', 'http without ranges', 's3', 'registry'] as const;
type Kind = (typeof sources)[number];
const sinks = ['Filesystem', 'Block'] as const;
const troubles = ['cut', 'silent', 'ended', 'none'] as const;
type Interruption = (typeof troubles)[number];

/** Every format from every source; sinks and interruptions change from one to the next, so that each pair of them is met. */
const rows = formats.flatMap((format, row) =>
  sources.map((source, column) => ({
    format,
    source,
    sink: sinks[(row + column) % 2] ?? 'Block',
    trouble: troubles[(row + 3 * column + Math.floor(row / 4)) % 4] ?? 'none',
  })),
);

const makeImages = (raw: string): ReadonlyMap<Format, Buffer> => {
  const reference = readFileSync(raw);
  const of = (name: string, driver: string, ...options: string[]) =>
    convertDisk(raw, driver, join(root, name), options);
  const packed = of('zlib', 'qcow2', '-c');
  return new Map<Format, Buffer>([
    ['raw', reference],
    ['raw.gz', gzipSync(reference, { level: 1 })],
    ['raw.xz', runTool('xz', ['-0', '-c'], reference)],
    ['raw.zst', zstdCompressSync(reference)],
    ['qcow2', of('plain', 'qcow2')],
    ['zlib.qcow2', packed],
    ['zstd.qcow2', of('zstd', 'qcow2', '-c', '-o', 'compression_type=zstd')],
    ['zlib.qcow2.gz', gzipSync(packed)],
    ['vmdk', of('vmdk', 'vmdk', '-o', 'subformat=streamOptimized')],
    ['vdi', of('vdi', 'vdi')],
    ['vhd', of('vhd', 'vpc', '-o', 'force_size=on')],
    ['fixed.vhd', of('fixed', 'vpc', '-o', 'subformat=fixed,force_size=on')],
    ['vhdx', of('vhdx', 'vhdx')],
  ]);
};

const credentials = { accessKeyId: 'tester', secretAccessKey: 's3cret-key-of-tests' };
const bucket = 'images';

describe.skipIf(!hasTools('qemu-img', 'xz') || !hasRegistry())('the disk that arrives', { timeout: 240_000 }, () => {
  let images: ReadonlyMap<Format, Buffer>;
  let reference: Buffer;
  let origin: Origin;
  let store: ObjectStore;
  let registry: TestRegistry;
  const lines = new Map<Kind, ShakyLine>();
  const secretDir = join(root, 'secret');
  const imageOf = (format: string): Buffer => images.get(format as Format) ?? Buffer.alloc(0);

  beforeAll(async () => {
    const raw = join(root, 'reference.raw');
    writeDisk(raw, diskBytes);
    // Enough of it for connections that end in the middle.
    writeFileSync(raw, noise('more', 3 * mib), { flag: 'r+' });
    reference = readFileSync(raw);
    images = makeImages(raw);
    origin = await startOrigin((request) => {
      const [, ranges, format = ''] = request.path.split('/');
      return fileAnswer(request, imageOf(format), { ranges: ranges === 'ranges' });
    });
    store = await startObjectStore({ dir: join(root, 'store'), credentials: [credentials] });
    registry = await startRegistry();
    const sdk = new S3Client({ endpoint: store.url, region: store.region, forcePathStyle: true, credentials });
    await sdk.send(new CreateBucketCommand({ Bucket: bucket }));
    // One after the other: the registry loses blobs that two bring at the same moment.
    for (const [format, bytes] of images) {
      await sdk.send(new PutObjectCommand({ Bucket: bucket, Key: format, Body: bytes }));
      await pushDisk({ host: registry.direct, repository: 'disks' }, bytes, format);
    }
    sdk.destroy();
    mkdirSync(secretDir);
    writeFileSync(join(secretDir, 'accessKeyId'), credentials.accessKeyId);
    writeFileSync(join(secretDir, 'secretKey'), credentials.secretAccessKey);
    const ports: Readonly<Record<Kind, number>> = {
      http: origin.port,
      'http without ranges': origin.port,
      s3: Number(new URL(store.url).port),
      registry: Number(registry.direct.split(':')[1]),
    };
    for (const kind of sources) lines.set(kind, await startShakyLine(ports[kind]));
  }, 240_000);
  afterAll(async () => {
    await Promise.all([...lines.values()].map((line) => line.close()));
    await Promise.all([origin.close(), store.close(), registry.close()]);
  });

  const lineTo = (kind: Kind): ShakyLine => {
    const line = lines.get(kind);
    if (line === undefined) throw new Error(`no line to ${kind}`);
    return line;
  };
  const sourceOf = (kind: Kind, format: Format): unknown => {
    const host = `127.0.0.1:${lineTo(kind).port}`;
    if (kind === 'http') return { type: 'http', url: `http://${host}/ranges/${format}` };
    if (kind === 'http without ranges') return { type: 'http', url: `http://${host}/stream/${format}` };
    if (kind === 'registry') return { type: 'registry', url: `docker://${host}/disks:${format}`, plainHttp: true };
    const { region } = store;
    return { type: 's3', endpoint: `http://${host}`, region, pathStyle: true, bucket, key: format, secretDir };
  };
  const attempt = async (spec: TransferSpec, signal = new AbortController().signal) => {
    const report = await runTransfer(spec, {
      run: 'run-1',
      signal,
      send: () => Promise.resolve(),
      log: () => {},
      saving: eagerSaving,
      wait: shortWait,
    });
    return TransferReport.parse(report);
  };
  /** An attempt that is ended in the middle: what it leaves must not be mistaken for a disk. */
  const endedAttempt = async (spec: TransferSpec, kind: Kind, size: number): Promise<void> => {
    const line = lineTo(kind);
    const control = new AbortController();
    line.trouble = () => ({ silentAfter: Math.min(mib, Math.floor(size / 2)) });
    const ending = setTimeout(() => control.abort(), 250);
    const report = await attempt(spec, control.signal);
    clearTimeout(ending);
    line.trouble = () => 'none';
    if (report.outcome === 'succeeded') throw new Error('it was over before it was ended');
    expect(report.retryable).toBe(true);
    if (spec.target?.volumeMode === 'Filesystem') expect(existsSync(spec.target.path)).toBe(false);
  };
  /** The first connections have trouble, each a little later than the one before. */
  const spoil = (kind: Kind, trouble: Interruption, size: number): void => {
    const line = lineTo(kind);
    line.count = 0;
    const at = (index: number) => Math.min(500_000, Math.floor(size / 4)) + 100_000 * index;
    const many = trouble === 'silent' ? 1 : 2;
    line.trouble = (index) => {
      if (index >= many) return 'none';
      if (trouble === 'cut') return { cutAfter: at(index) };
      return trouble === 'silent' ? { silentAfter: at(index) } : 'none';
    };
  };

  it.each(drawn(rows, 1 / 4))('from $source in a $sink is the published $format: $trouble', async (row) => {
    const { format, source, sink, trouble } = row;
    const folder = mkdtempSync(join(root, 'case-'));
    const path = join(folder, 'disk.img');
    if (sink === 'Block') writeFileSync(path, Buffer.alloc(diskBytes + mib, 0xaa));
    const published = imageOf(format);
    const spec = TransferSpec.parse({
      mode: 'import',
      source: sourceOf(source, format),
      target: { path, volumeMode: sink, capacityBytes: diskBytes + mib },
      scratchDir: join(folder, 'scratch'),
      limits: { retries: 20, idleSeconds: trouble === 'silent' ? 1 : 20 },
      allowedAddresses: ['127.0.0.0/8'],
    });
    if (trouble === 'ended') await endedAttempt(spec, source, published.length);
    else spoil(source, trouble, published.length);
    const report = await attempt(spec);
    expect(report).toMatchObject({ outcome: 'succeeded', inspection: { virtualSize: diskBytes } });
    expect(report).toMatchObject({ digests: { sha256: sha256(published) } });
    const wanted = sink === 'Block' ? Buffer.concat([reference, Buffer.alloc(mib)]) : reference;
    expect(readFileSync(path).equals(wanted)).toBe(true);
  });
});
