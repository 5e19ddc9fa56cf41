// Memory is constant, whatever the size of the image: of the function that bytes pass through, and of the Jobs that receive and send them.
import { open } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
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
/** For one process: Node itself uses a fifth of it, and half of the longer body would not fit. */
const mostBytes = 512 * mib;
/** The allowed difference to a small image, for which the garbage collector had less to do: on a busy machine it runs late. */
const allowance = 256 * mib;

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

/** Peaks of the function and of the largest worker during `work`. */
const peaksDuring = async (fn: TransferProcess, work: () => Promise<unknown>) => {
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

/** The disk usage of files. */
const storedBytes = async (folder: string): Promise<number> =>
  Number((await run('du', ['-s', '--block-size=1', folder])).stdout.split('\t')[0]);

const curl = (...args: readonly string[]) =>
  run('curl', ['-sS', '-f', '-H', `Authorization: ${cluster.editor.authorization}`, ...args]);

const upload = async (fn: TransferProcess, name: string, file: string): Promise<void> => {
  await cluster.kube.create(harvesterImageKind.type, anUploadImage(name));
  const base = `${fn.url}/v1/harvester/harvesterhci.io.virtualmachineimages/${namespace}`;
  await curl('-X', 'POST', '-T', file, `${base}/${name}?action=upload`);
  await cluster.untilImage(name, 'Imported');
};

interface Size {
  /** Bytes of a disk that is uploaded and downloaded unchanged as qcow2. */
  readonly image: number;
  /** Bytes that are transferred when one is uploaded or downloaded raw. */
  readonly body: number;
}
const sizes = {
  small: { image: 64 * mib, body: 64 * mib },
  large: { image: 6 * gib, body: 256 * mib },
} as const satisfies Record<string, Size>;

it('of a sparse image of 6 GiB is no more than that of one of 64 MiB, in both directions', async () => {
  const observed: Record<string, { step: string; fn: number; worker: number }[]> = {};
  for (const [name, { image, body }] of Object.entries(sizes)) {
    const [disk, plain, packed] = [
      await sparseDisk(`${name}.raw`, image),
      await sparseDisk(`${name}-body.raw`, body),
      join(dir, `${name}.qcow2`),
    ];
    await run('qemu-img', ['convert', '-f', 'raw', '-O', 'qcow2', disk, packed]);
    const back = join(dir, `${name}-back.qcow2`);
    const fn = await startTransferProcess(cluster.kubeconfigPath);
    const link = (form: string) => `${fn.url}/downloads/virtualmachineimages/${namespace}/${name}?format=${form}`;
    const steps: [string, () => Promise<unknown>][] = [
      ['a body is sent', () => upload(fn, `${name}-body`, plain)],
      ['an image is sent', () => upload(fn, name, packed)],
      ['an image is taken', () => curl('-o', back, link('qcow2'))],
      ['a body is taken', () => curl('-o', '/dev/null', '-r', `0-${body - 1}`, link('raw'))],
    ];
    try {
      observed[name] = [];
      for (const [step, work] of steps) observed[name].push({ step, ...(await peaksDuring(fn, work)) });
      // Nothing is buffered on disk for downloads.
      expect(await storedBytes(join(cluster.dataDir, 'pods'))).toBeLessThan(16 * mib);
      await run('qemu-img', ['compare', '-f', 'qcow2', '-F', 'raw', back, disk]);
    } finally {
      await fn.kill('SIGKILL');
    }
  }
  for (const [index, large] of observed['large']!.entries()) {
    const small = observed['small']![index]!;
    for (const who of ['fn', 'worker'] as const) {
      const most = Math.min(mostBytes, small[who] + allowance);
      const facts = { step: large.step, who, small: small[who] / mib, large: large[who] / mib };
      expect(facts).toMatchObject({
        small: expect.toSatisfy((peak: number) => peak > 0),
        large: expect.toSatisfy((peak: number) => peak * mib < most),
      });
    }
  }
}, 300_000);
