import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { lockNode } from '#local-cluster/node/run.ts';
import { Conflict } from '#shared/runtime/errors.ts';

let dir: string;
beforeAll(async () => {
  dir = await mkdtemp(join(tmpdir(), 'bullion-lock-'));
});
afterAll(() => rm(dir, { recursive: true }));

it('a machine has one node, whatever their data directories are', async () => {
  const lock = (name: string): Promise<() => Promise<void>> => lockNode(join(dir, name), join(dir, 'machine'));
  const unlock = await lock('one');
  await expect(lock('two')).rejects.toThrow(Conflict);
  await unlock();
  const unlockOther = await lock('two');
  await unlockOther();
});

it('a data directory that is in use leaves the machine free', async () => {
  const unlock = await lockNode(join(dir, 'used'), join(dir, 'first'));
  await expect(lockNode(join(dir, 'used'), join(dir, 'second'))).rejects.toThrow(Conflict);
  await (
    await lockNode(join(dir, 'free'), join(dir, 'second'))
  )();
  await unlock();
});
