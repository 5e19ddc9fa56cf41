// A real store behind a proxy that corrupts its responses: the reaction of the worker of a backup and of the function.
import { randomBytes } from 'node:crypto';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { type IncomingMessage, type ServerResponse, createServer, request as forward } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import type { BackupImageObject } from '#shared/backup/image.ts';
import { createOpenTarget } from '#shared/backup/open.ts';
import { indexKey } from '#shared/transfer/chunks/chunk-index.ts';
import { runTransfer } from '#shared/transfer/run.ts';
import { TransferSpec } from '#shared/transfer/spec.ts';
import { type BackupStore, backupBucket, backupCredentials, startBackupStore } from '#test/support/backup.ts';
import { type MemoryCluster, backedUp, createMemoryCluster } from '#test/support/backup-world.ts';
import { aHyperCloudImage } from '#test/support/builders.ts';
import { secrets } from '#shared/api/foreign/core.ts';

const mib = 2 ** 20;
const prefix = 'harvester/vmimage-data/';
const metadataKey = 'harvester/vmimages/default-ubuntu/vmimage-metadata.yaml';

/** The fault of one request. */
type How = 'pass' | 'refused' | 'busy' | 'cut' | 'slow' | 'empty';

const error = (code: string) => `<?xml version="1.0"?><Error><Code>${code}</Code></Error>`;

describe('an unreliable backup target', { timeout: 300_000 }, () => {
  const dir = mkdtempSync(join(tmpdir(), 'bullion-ill-store-'));
  const disk = join(dir, 'disk.img');
  let backup: BackupStore;
  let spoil: (method: string, path: string) => How = () => 'pass';
  const pass = (incoming: IncomingMessage, response: ServerResponse): void => {
    const { method, url: path, headers } = incoming;
    const port = new URL(backup.server.url).port;
    const onward = forward({ host: '127.0.0.1', port, method, path, headers }, (answer) => {
      response.writeHead(answer.statusCode ?? 500, answer.headers);
      answer.pipe(response);
    });
    onward.on('error', () => response.destroy());
    incoming.pipe(onward);
  };
  const answer = async (incoming: IncomingMessage, response: ServerResponse): Promise<void> => {
    const how = spoil(incoming.method ?? '', decodeURIComponent(incoming.url ?? ''));
    const xml = { 'content-type': 'application/xml' };
    switch (how) {
      case 'refused':
        return void response.writeHead(403, xml).end(error('AccessDenied'));
      case 'busy':
        return void response.writeHead(503, xml).end(error('SlowDown'));
      case 'cut':
        // After the first bytes, if there are any.
        incoming.once('data', () => incoming.destroy()).once('end', () => incoming.destroy());
        return;
      case 'empty':
        return void response
          .writeHead(200, xml)
          .end('<?xml version="1.0"?><ListBucketResult><IsTruncated>false</IsTruncated></ListBucketResult>');
      case 'slow':
        await delay(150);
        break;
      case 'pass':
        break;
    }
    pass(incoming, response);
  };
  const proxy = createServer((incoming, response) => void answer(incoming, response));
  const endpoint = () => `http://127.0.0.1:${(proxy.address() as AddressInfo).port}`;
  beforeAll(async () => {
    backup = await startBackupStore(join(dir, 'store'));
    await new Promise<void>((resolve) => proxy.listen(0, '127.0.0.1', resolve));
    mkdirSync(join(dir, 'secret'));
    writeFileSync(join(dir, 'secret', 'accessKeyId'), backupCredentials.accessKeyId);
    writeFileSync(join(dir, 'secret', 'secretKey'), backupCredentials.secretAccessKey);
  });
  afterAll(async () => {
    proxy.closeAllConnections();
    await new Promise((resolve) => proxy.close(resolve));
    await backup.close();
    rmSync(dir, { recursive: true, force: true });
  });
  beforeEach(() => {
    spoil = () => 'pass';
    writeFileSync(disk, Buffer.concat([randomBytes(5 * mib), Buffer.alloc(8 * mib), randomBytes(mib)]));
  });

  const place = (key: string) => ({
    type: 's3',
    endpoint: endpoint(),
    region: backup.server.region,
    pathStyle: true,
    bucket: backupBucket,
    key,
    secretDir: join(dir, 'secret'),
  });
  const transfer = async (over: object) => {
    const spec = TransferSpec.parse({
      scratchDir: join(dir, 'scratch'),
      limits: { idleSeconds: 20, totalSeconds: 240, retries: 4 },
      allowedAddresses: ['127.0.0.0/8'],
      ...over,
    });
    const signal = new AbortController().signal;
    return runTransfer(spec, { run: 'run', signal, send: () => Promise.resolve(), log: () => {} });
  };
  const keep = () =>
    transfer({ mode: 'backup', source: { type: 'volume', path: disk }, backup: { into: place(prefix) } });
  const isTable = (path: string): boolean => path.includes('/disks/');

  it.each<[string, (observed: number, method: string) => How]>([
    ['busy now and then', (observed) => (observed % 4 === 1 ? 'busy' : 'pass')],
    ['cutting connections', (observed, method) => (method === 'PUT' && observed % 3 === 0 ? 'cut' : 'pass')],
    ['slow', () => 'slow'],
  ])('completes a backup all the same: %s', async (_, how) => {
    let observed = 0;
    spoil = (method) => how((observed += 1), method);
    const report = await keep();
    expect(report).toMatchObject({ outcome: 'succeeded' });
    spoil = () => 'pass';
    const target = join(dir, 'restored.img');
    const made = report.outcome === 'succeeded' ? (report.backup?.disk ?? '') : '';
    const restored = await transfer({
      mode: 'import',
      source: place(indexKey(prefix, made)),
      target: { path: target, volumeMode: 'Filesystem', capacityBytes: 64 * mib },
    });
    expect(restored.outcome).toBe('succeeded');
    expect(readFileSync(target).equals(readFileSync(disk))).toBe(true);
  });

  it('has no entry for a backup whose last write it rejected, and needs only that write the next time', async () => {
    spoil = (method, path) => (method === 'PUT' && isTable(path) ? 'refused' : 'pass');
    const before = (await Array.fromAsync(backup.store.list(`${prefix}disks/`))).length;
    expect(await keep()).toMatchObject({ outcome: 'failed', reason: 'TargetFailed' });
    expect(await Array.fromAsync(backup.store.list(`${prefix}disks/`))).toHaveLength(before);
    spoil = () => 'pass';
    const healed = await keep();
    expect(healed).toMatchObject({ outcome: 'succeeded', backup: { newChunks: 0 } });
    expect(healed.outcome === 'succeeded' ? healed.backup?.sentBytes : 0).toBeLessThan(1000);
  });

  const cluster = (): MemoryCluster => {
    const made = createMemoryCluster(new Map(), {
      open: createOpenTarget({ allowedAddresses: ['127.0.0.0/8'] }),
    });
    for (const namespace of ['default', 'bullion-system'])
      made.kube.edit(secrets, { namespace, name: 'backup-target' }, (secret) => {
        secret.data = {
          accessKeyId: Buffer.from(backupCredentials.accessKeyId).toString('base64'),
          secretKey: Buffer.from(backupCredentials.secretAccessKey).toString('base64'),
        };
      });
    made.setTarget({ type: 's3', endpoint: endpoint(), bucketName: backupBucket });
    return made;
  };
  const readyOf = (image: BackupImageObject | undefined) =>
    image?.status?.conditions?.find(({ type }) => type === 'MetadataReady');

  it('is reported on the image while it rejects, is busy or cuts connections, and has complete metadata once it recovers', async () => {
    const report = await keep();
    const made = report.outcome === 'succeeded' ? (report.backup?.disk ?? '') : '';
    const one = cluster();
    const image = one.ready(backedUp(aHyperCloudImage()));
    await one.tick();
    one.finishJob(image, made);
    for (const how of ['refused', 'busy', 'cut'] as const) {
      spoil = (method, path) => (method === 'PUT' && path.includes('vmimage-metadata') ? how : 'pass');
      await one.tick();
      expect(readyOf(await one.image(image))).toMatchObject({ status: 'False', reason: 'BackupTargetUnavailable' });
      expect(await backup.store.read(metadataKey, mib)).toBeUndefined();
    }
    spoil = () => 'pass';
    await one.tick();
    expect(readyOf(await one.image(image))?.status).toBe('True');
    expect((await backup.store.read(metadataKey, mib))?.bytes.toString()).toContain(made);
  });

  it.each<How>(['empty', 'busy', 'refused', 'cut'])('is queried again after listings that are: %s', async (how) => {
    const two = cluster();
    spoil = (method, path) => (method === 'GET' && path.includes('list-type=2') ? how : 'pass');
    await two.tick(2);
    const ubuntu = aHyperCloudImage() as unknown as BackupImageObject;
    expect(await two.image(ubuntu)).toBeUndefined();
    spoil = () => 'pass';
    await two.tick();
    expect(await two.image(ubuntu)).toBeDefined();
  });
});
