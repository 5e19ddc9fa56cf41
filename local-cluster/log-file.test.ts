import { mkdtemp, readFile, readdir, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { openLogFile } from '#local-cluster/log-file.ts';

let dir = '';
beforeEach(async () => void (dir = await mkdtemp(join(tmpdir(), 'bullion-log-'))));
afterEach(() => rm(dir, { recursive: true }));

const lines = async (name: string) => (await readFile(join(dir, name), 'utf8')).trim().split('\n');
const numbers = (from: number, to: number) => Array.from({ length: to - from }, (_, index) => `line ${from + index}`);

it('a log keeps what is new and the file before it, and loses no line of those', async () => {
  const file = join(dir, 'cluster.log');
  const log = await openLogFile(file, 100);
  for (const line of numbers(10, 60)) {
    log.write(`${line}\n`);
    await new Promise((next) => setImmediate(next));
  }
  await log.close();
  expect((await readdir(dir)).toSorted()).toEqual(['cluster.log', 'cluster.log.1']);
  const kept = [...(await lines('cluster.log.1')), ...(await lines('cluster.log'))];
  expect(kept).toEqual(numbers(60 - kept.length, 60));
  expect(kept.length).toBeLessThanOrEqual(30);
});

it('a log is gone on with at the next start, and counts what is there', async () => {
  const file = join(dir, 'cluster.log');
  for (const line of ['first start', 'second start']) {
    const log = await openLogFile(file, 5);
    log.write(`${line}\n`);
    await log.close();
  }
  expect(await lines('cluster.log.1')).toEqual(['first start']);
  expect(await lines('cluster.log')).toEqual(['second start']);
});

it('a closed log takes nothing more', async () => {
  const file = join(dir, 'deep', 'cluster.log');
  const log = await openLogFile(file);
  log.write('one\n');
  await log.close();
  log.write('two\n');
  expect(await lines('deep/cluster.log')).toEqual(['one']);
});
