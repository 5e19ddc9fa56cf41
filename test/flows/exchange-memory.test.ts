// Memory is a constant, whatever the size of the image: of the function that bytes pass through, and of the Jobs that take and give them.
import { createReadStream } from 'node:fs';
import { open, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { request } from 'undici';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { harvesterImageKind } from '#shared/api/harvester/image.ts';
import { namespace, run } from '#test/support/cluster.ts';
import { temporaryDirectory } from '#test/support/directory.ts';
import { noise } from '#test/support/disk.ts';
import { type ExchangeCluster, anUploadImage, startExchangeCluster } from '#test/support/exchange.ts';
import {
  type TransferProcess,
  peakMemoryOf,
  startTransferProcess,
  workerPids,
} from '#test/support/transfer-process.ts';

const mib = 2 ** 20;
const gib = 2 ** 30;
/** Of one process: Node itself takes a fifth of it. */
const mostBytes = 512 * mib;
/** What may come on top of a small image's, whose collector had less to do. */
const allowance = 128 * mib;

const dir = temporaryDirectory();
let cluster: ExchangeCluster;

beforeAll(async () => {
  cluster = await startExchangeCluster();
}, 120_000);
afterAll(() => cluster?.close());

/** Data at its beginning, in its middle and at its end; holes between. */
const sparseDisk = async (name: string, bytes: number): Promise<string> => {
  const path = join(dir, name);
  await using file = await open(path, 'w');
  await file.truncate(bytes);
  for (const [index, at] of [0, bytes / 2, bytes - 4 * mib].entries()) {
    await file.write(noise(`${name}${index}`, 4 * mib), 0, 4 * mib, at);
  }
  return path;
};

/** Peaks of the function and of the greatest worker while `work` goes on. */
const peaksDuring = async (fn: TransferProcess, work: () => Promise<void>) => {
  let [worker, isOver] = [0, false];
  const watching = (async () => {
    while (!isOver) {
      for (const pid of await workerPids(cluster.dataDir)) {
        const peak = await peakMemoryOf(pid).catch(() => 0);
        if (peak > worker) worker = peak;
      }
      await sleep(50);
    }
  })();
  try {
    await work();
  } finally {
    isOver = true;
    await watching;
  }
  return { fn: await peakMemoryOf(fn.pid), worker };
};

/** What files take on disk. */
const storedBytes = async (folder: string): Promise<number> =>
  Number((await run('du', ['-s', '--block-size=1', folder])).stdout.split('\t')[0]);

const upload = async (fn: TransferProcess, name: string, file: string, size: number): Promise<void> => {
  await cluster.kube.create(harvesterImageKind.type, anUploadImage(name));
  const url = `${fn.url}/v1/harvester/harvesterhci.io.virtualmachineimages/${namespace}/${name}?action=upload&size=${size}`;
  const answer = await request(url, {
    method: 'POST',
    body: createReadStream(file, { highWaterMark: mib }),
    headers: cluster.editor,
    headersTimeout: 0,
  });
  expect([answer.statusCode, await answer.body.text()]).toEqual([200, '']);
};

const take = async (fn: TransferProcess, name: string, query: string, bytes?: number): Promise<Buffer[]> => {
  const range = bytes === undefined ? {} : { range: `bytes=0-${bytes - 1}` };
  const { statusCode, body } = await request(`${fn.url}/downloads/virtualmachineimages/${namespace}/${name}?${query}`, {
    headers: { ...cluster.editor, ...range },
    headersTimeout: 0,
  });
  expect(statusCode).toBe(bytes === undefined ? 200 : 206);
  const kept: Buffer[] = [];
  let taken = 0;
  for await (const chunk of body as AsyncIterable<Buffer>) {
    if (bytes === undefined) kept.push(Buffer.from(chunk));
    taken += chunk.length;
  }
  if (bytes !== undefined) expect(taken).toBe(bytes);
  return kept;
};

it('of 6 GiB takes no more than of 64 MiB, in and out', async () => {
  const sizes = { small: 64 * mib, large: 6 * gib } as const;
  const seen: Record<string, { fn: number; worker: number }[]> = {};
  for (const [name, size] of Object.entries(sizes)) {
    const file = await sparseDisk(`${name}.raw`, size);
    const fn = await startTransferProcess(cluster.kubeconfigPath);
    try {
      const back = join(dir, `${name}.qcow2`);
      const sent = await peaksDuring(fn, () => upload(fn, name, file, size));
      await cluster.untilImage(name, 'Imported');
      seen[name] = [
        sent,
        await peaksDuring(fn, async () => writeFile(back, await take(fn, name, 'format=qcow2'))),
        await peaksDuring(fn, async () => void (await take(fn, name, 'format=raw', Math.min(size, gib)))),
      ];
      // Nothing is staged on the way out.
      expect(await storedBytes(join(cluster.dataDir, 'pods'))).toBeLessThan(16 * mib);
      expect((await readFile(back)).subarray(0, 4).toString('latin1')).toBe('QFI\u00fb');
      await run('qemu-img', ['compare', '-f', 'qcow2', '-F', 'raw', back, file]);
    } finally {
      await fn.kill('SIGKILL');
    }
  }
  for (const [step, large] of seen['large']!.entries()) {
    const small = seen['small']![step]!;
    for (const who of ['fn', 'worker'] as const) {
      const most = Math.min(mostBytes, small[who] + allowance);
      const facts = { step, who, small: Math.round(small[who] / mib), large: Math.round(large[who] / mib) };
      expect(facts).toMatchObject({
        small: expect.toSatisfy((peak: number) => peak > 0),
        large: expect.toSatisfy((peak: number) => peak * mib < most),
      });
    }
  }
}, 300_000);
