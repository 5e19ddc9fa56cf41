// An upload whose function or Job is killed in the middle: its client is told, and may begin again.
import { type ChildProcess, spawn } from 'node:child_process';
import { createReadStream } from 'node:fs';
import { mkdtemp, rm, stat } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { request } from 'undici';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { harvesterImageKind } from '#shared/api/harvester/image.ts';
import { persistentVolumeClaims } from '#shared/api/foreign/core.ts';
import { writeBootDisk } from '#infra/local/demo/boot-disk.ts';
import { namespace, run } from '#test/support/cluster.ts';
import { type ExchangeCluster, anUploadImage, startExchangeCluster } from '#test/support/exchange.ts';
import {
  type SlowLine,
  type TransferProcess,
  killWorker,
  startSlowLine,
  startTransferProcess,
} from '#test/support/transfer-process.ts';

const mib = 2 ** 20;
const perSecond = 4 * mib;
let dir = '';
let raw = '';
let file = '';
let size = 0;

beforeAll(async () => {
  dir = await mkdtemp(join(tmpdir(), 'bullion-interrupted-'));
  raw = join(dir, 'disk.raw');
  await writeBootDisk(raw, { bytes: 64 * mib, dataBytes: 32 * mib });
  file = join(dir, 'disk.qcow2');
  await run('qemu-img', ['convert', '-f', 'raw', '-O', 'qcow2', raw, file]);
  ({ size } = await stat(file));
});
afterAll(() => rm(dir, { recursive: true, force: true }));

const clients: ChildProcess[] = [];
afterEach(() => {
  for (const client of clients.splice(0)) client.kill('SIGKILL');
});

interface Client {
  /** Exit code, and what it said. */
  readonly over: Promise<{ readonly code: number | null; readonly said: string }>;
}

const startClient = (...args: readonly string[]): Client => {
  const child = spawn(process.execPath, ['cli/main.ts', ...args], { stdio: ['ignore', 'pipe', 'pipe'] });
  clients.push(child);
  let said = '';
  for (const stream of [child.stdout, child.stderr]) stream.on('data', (text: Buffer) => (said += text.toString()));
  const over = new Promise<{ code: number | null; said: string }>((resolve) =>
    child.once('close', (code) => resolve({ code, said })),
  );
  return { over };
};

const sameDisk = async (path: string): Promise<void> => {
  await run('qemu-img', ['compare', '-F', 'raw', path, raw]);
};

describe('each of those who take part may die', { timeout: 240_000 }, () => {
  let cluster: ExchangeCluster;
  let fn: TransferProcess;
  let line: SlowLine;
  const restart = async (): Promise<void> => {
    fn = await startTransferProcess(cluster.kubeconfigPath, { PORT: new URL(fn.url).port });
  };
  beforeAll(async () => {
    cluster = await startExchangeCluster();
    fn = await startTransferProcess(cluster.kubeconfigPath);
    line = await startSlowLine(() => fn.url, perSecond);
  }, 120_000);
  afterAll(async () => {
    await fn?.kill('SIGKILL');
    await line?.close();
    await cluster?.close();
  });

  const download = (name: string, path: string): Client =>
    startClient(
      'download',
      name,
      path,
      '--server',
      line.url,
      '--kubeconfig',
      cluster.kubeconfigPath,
      '--format',
      'raw',
    );

  const more = async (bytes: number): Promise<void> => {
    const enough = line.sent() + bytes;
    await expect.poll(() => line.sent(), { timeout: 60_000, interval: 50 }).toBeGreaterThan(enough);
  };

  it('in the other protocols, whose clients begin again', async () => {
    await cluster.kube.create(harvesterImageKind.type, anUploadImage('action'));
    const send = async (server: string): Promise<number> => {
      const url = `${server}/v1/harvester/harvesterhci.io.virtualmachineimages/${namespace}/action?action=upload&size=${size}`;
      const { statusCode, body } = await request(url, {
        method: 'POST',
        body: createReadStream(file),
        headers: cluster.editor,
        headersTimeout: 120_000,
      });
      await body.dump();
      return statusCode;
    };
    const cut = send(line.url).catch(() => 0);
    await more(perSecond);
    await fn.kill('SIGKILL');
    expect(await cut).not.toBe(200);
    await restart();
    const second = send(line.url).catch(() => 0);
    await more(perSecond);
    await killWorker(cluster.dataDir);
    expect(await second).toBe(503);
    await expect.poll(() => send(fn.url), { timeout: 120_000, interval: 500 }).toBe(200);
    await cluster.untilImage('action', 'Imported');
    const back = join(dir, 'action.raw');
    expect((await download('action', back).over).code).toBe(0);
    await sameDisk(back);
  });

  it('and a file of which nobody sends the rest does not stay', async () => {
    await cluster.kube.create(harvesterImageKind.type, anUploadImage('left'));
    const begun = await fetch(`${cluster.transferUrl}/files/virtualmachineimages/${namespace}/left`, {
      method: 'POST',
      headers: {
        ...cluster.editor,
        'tus-resumable': '1.0.0',
        'upload-length': String(size),
        'upload-metadata': `virtualSize ${Buffer.from(String(64 * mib)).toString('base64')}`,
      },
    });
    expect(begun.status).toBe(201);
    await cluster.kube.delete(harvesterImageKind.type, { namespace, name: 'left' });
    const left = async () =>
      (await cluster.kube.list(persistentVolumeClaims, { namespace })).items.filter(({ metadata }) =>
        metadata.name.startsWith('spool-'),
      );
    await expect.poll(left, { timeout: 60_000 }).toEqual([]);
  });
});
