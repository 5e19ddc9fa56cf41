// Runs one way once and says what it cost: wall and processor seconds, and the largest resident set of any of its processes.
import { spawnSync } from 'node:child_process';
import { mkdirSync, readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import type { BenchImage } from '#test/bench/transfer/images.ts';
import type { Way } from '#test/bench/transfer/ways.ts';

export interface Cost {
  readonly wall: number;
  readonly cpu: number;
  readonly residentMiB: number;
}

export interface Setting {
  readonly url: string;
  /** Where the images are. */
  readonly directory: string;
  readonly raw: string;
}

const entry = new URL('../../../functions/transfer-job/index.ts', import.meta.url).pathname;

const jobEnvironment = (url: string, target: string, work: string): Record<string, string> => ({
  BULLION_TRANSFER: JSON.stringify({
    mode: 'import',
    source: { type: 'http', url },
    target: { path: target, volumeMode: 'Filesystem', capacityBytes: 2 ** 36 },
    scratchDir: work,
    allowedAddresses: ['127.0.0.0/8'],
  }),
  BULLION_OWNER: JSON.stringify({ apiVersion: 'v1', kind: 'Bench', namespace: 'bench', name: 'bench', uid: 'bench' }),
  POD_NAME: 'bench',
  BULLION_TERMINATION_LOG: join(work, 'report'),
});

/** Throws when the way fails or its disk differs from the reference. */
export const measure = (way: Way, image: BenchImage, { url, directory, raw }: Setting): Cost => {
  const work = join(directory, 'work');
  rmSync(work, { recursive: true, force: true });
  mkdirSync(work);
  const target = join(work, 'target');
  const result = join(work, 'time');
  const address = `${url}/${image.file}`;
  const ended = spawnSync('/usr/bin/time', ['-o', result, '-f', '%e %U %S %M', 'bash', '-c', way.script], {
    encoding: 'utf8',
    env: {
      ...process.env,
      ...jobEnvironment(address, target, work),
      node: process.execPath,
      entry,
      url: address,
      file: join(directory, image.file),
      work,
      target,
      format: image.format,
      unpack: image.unpack ?? '',
    },
  });
  if (ended.status !== 0) throw new Error(`${way.name} of ${image.name} failed: ${ended.stderr}`);
  const isRight = !way.fills || spawnSync('qemu-img', ['compare', '-f', 'raw', '-F', 'raw', raw, target]).status === 0;
  if (!isRight) throw new Error(`${way.name} of ${image.name} made another disk`);
  const [wall = 0, user = 0, system = 0, kib = 0] =
    readFileSync(result, 'utf8').trim().split('\n').at(-1)?.split(' ').map(Number) ?? [];
  rmSync(work, { recursive: true, force: true });
  return { wall, cpu: user + system, residentMiB: kib / 1024 };
};
