// An upload and everybody who takes part in it: each of them is killed in the middle, and the file arrives as it was sent.
import { type ChildProcess, spawn } from 'node:child_process';
import { createHash } from 'node:crypto';
import { createReadStream } from 'node:fs';
import { mkdtemp, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { request } from 'undici';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { harvesterImageKind } from '#shared/api/harvester/image.ts';
import { persistentVolumeClaims } from '#shared/api/foreign/core.ts';
import { writeBootDisk } from '#infra/local/demo/boot-disk.ts';
import { namespace, run, startClusterProcess } from '#test/support/cluster.ts';
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
  readonly kill: () => Promise<void>;
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
  return {
    over,
    kill: async () => {
      child.kill('SIGKILL');
      await over;
    },
  };
};

const sameDisk = async (path: string): Promise<void> => {
  await run('qemu-img', ['compare', '-F', 'raw', path, raw]);
};

const shuffled = <T>(items: readonly T[]): T[] =>
  items
    .map((item) => ({ item, at: Math.random() }))
    .toSorted((a, b) => a.at - b.at)
    .map(({ item }) => item);

describe('each of those who take part may die', { timeout: 240_000 }, () => {
  let cluster: ExchangeCluster;
  let fn: TransferProcess;
  let line: SlowLine;
  const restart = async (): Promise<void> => {
    fn = await startTransferProcess(cluster.kubeconfigPath);
  };
  beforeAll(async () => {
    cluster = await startExchangeCluster();
    await restart();
    line = await startSlowLine(() => fn.url, perSecond);
  }, 120_000);
  afterAll(async () => {
    await fn?.kill('SIGKILL');
    await line?.close();
    await cluster?.close();
  });

  const upload = (name: string, path = file): Client =>
    startClient(
      'upload',
      name,
      path,
      '--storage-class',
      'local',
      '--server',
      line.url,
      '--kubeconfig',
      cluster.kubeconfigPath,
    );
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

  /** Where it stands: what is there when all who knew are gone. */
  const offsetOf = async (name: string): Promise<number> => {
    const url = `${cluster.transferUrl}/files/virtualmachineimages/${namespace}/${name}`;
    const { body, statusCode } = await request(url, { headers: cluster.editor });
    const { upload: standing } = (await body.json()) as { upload?: { offset: number } };
    return statusCode === 200 ? (standing?.offset ?? 0) : 0;
  };
  const more = async (bytes: number): Promise<void> => {
    const enough = line.sent() + bytes;
    await expect.poll(() => line.sent(), { timeout: 60_000, interval: 50 }).toBeGreaterThan(enough);
  };

  it('while a file is sent, and it arrives as it was', async () => {
    let client = upload('sent');
    const deaths = {
      client: async () => {
        await client.kill();
        client = upload('sent');
      },
      function: async () => {
        await fn.kill('SIGKILL');
        await restart();
      },
      job: () => killWorker(cluster.dataDir),
    };
    for (const who of shuffled(Object.keys(deaths) as (keyof typeof deaths)[])) {
      // Longer than what is not sure to be on disk yet: something must be left of it.
      await more(perSecond * (1.5 + Math.random() / 2));
      await deaths[who]();
      expect([who, await offsetOf('sent')]).toEqual([who, expect.toSatisfy((offset: number) => offset > mib)]);
    }
    expect(await client.over).toMatchObject({ code: 0, said: expect.stringMatching(/100%/) });
    // What had arrived was not sent again: of each death what a second brings, and what was on its way.
    expect(line.sent()).toBeLessThan(size + 3 * 4 * perSecond);
    const { status, metadata } = await cluster.untilImage('sent', 'Imported');
    const hex = createHash('sha256')
      .update(await readFile(file))
      .digest('hex');
    expect(status?.digests?.['sha256']).toBe(hex);
    const claims = await cluster.kube.list(persistentVolumeClaims, { namespace });
    const left = claims.items.filter((claim) => claim.metadata.deletionTimestamp === undefined);
    expect(left.map((claim) => claim.metadata.name)).toEqual([`vmi-${metadata.uid}`]);
  });

  it('while a file is fetched, and it is as it was', async () => {
    const back = join(dir, 'back.raw');
    // Answers are as fast as the machine: cuts come by the count of what is there.
    let client = download('sent', back);
    for (let cut = 0; cut < 4; cut += 1) {
      await sleep(200 + 800 * Math.random());
      if (cut % 2 === 0) await client.kill();
      else await killWorker(cluster.dataDir).catch(() => undefined);
      if (cut % 2 === 0) client = download('sent', back);
    }
    expect(await client.over).toMatchObject({ code: 0, said: `${back}\n` });
    expect((await readFile(back)).equals(await readFile(raw))).toBe(true);
  });

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

describe('the cluster may be killed', { timeout: 240_000 }, () => {
  it('and goes on with the upload when it is there again', async () => {
    const dataDir = join(dir, 'cluster');
    let cluster = await startClusterProcess(dataDir);
    let fn = await startTransferProcess(cluster.kubeconfigPath);
    const line = await startSlowLine(() => fn.url, perSecond);
    try {
      const args = ['--server', line.url, '--kubeconfig', cluster.kubeconfigPath];
      const client = startClient('upload', 'sent', file, '--storage-class', 'local', ...args);
      await expect.poll(() => line.sent(), { timeout: 60_000 }).toBeGreaterThan(perSecond * 1.5);
      await Promise.all([cluster.kill('SIGKILL'), fn.kill('SIGKILL'), killWorker(dataDir)]);
      cluster = await startClusterProcess(dataDir);
      fn = await startTransferProcess(cluster.kubeconfigPath);
      let ended = await client.over;
      // A client that has seen the API server go may give up: it says how to go on.
      if (ended.code !== 0) ended = await startClient('upload', 'sent', file, ...args).over;
      expect(ended).toMatchObject({ code: 0 });
      expect(line.sent()).toBeLessThan(size + perSecond * 4);
      const back = join(dir, 'restarted.raw');
      const got = await startClient('download', 'sent', back, '--format', 'raw', ...args).over;
      expect(got).toEqual({ code: 0, said: `${back}\n` });
      expect((await readFile(back)).equals(await readFile(raw))).toBe(true);
    } finally {
      await fn.kill('SIGKILL');
      await line.close();
      await cluster.kill('SIGTERM');
      await writeFile(join(dir, 'over'), '');
    }
  });
});
