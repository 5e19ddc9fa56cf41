import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { copyFileSync, rmSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { createStore } from './store.ts';

const rounds = 8;

/** Runs the writer until it has reported some writes, kills it during others, and returns all reported writes. */
const writeAndKill = async (file: string, prefix: string, writes: number): Promise<Map<string, number>> => {
  const writer = join(import.meta.dirname, 'writer.fixture.ts');
  const child = spawn(process.execPath, [writer, file, prefix], { stdio: ['ignore', 'pipe', 'inherit'] });
  const acknowledged = new Map<string, number>();
  const lines = createInterface({ input: child.stdout });
  lines.on('line', (line) => {
    const [name = '', version = ''] = line.split(' ');
    acknowledged.set(name, Number(version));
    if (acknowledged.size === writes) child.kill('SIGKILL');
  });
  await Promise.all([once(child, 'exit'), once(lines, 'close')]);
  return acknowledged;
};

describe('a store whose process is killed', () => {
  let folder = '';
  beforeEach(async () => {
    folder = await mkdtemp(join(tmpdir(), 'store-'));
  });
  afterEach(() => rm(folder, { recursive: true, force: true }));

  test('has everything it acknowledged, with increasing versions', async () => {
    const file = join(folder, 'state.db');
    const acknowledged = new Map<string, number>();
    for (let round = 0; round < rounds; round += 1) {
      for (const [name, version] of await writeAndKill(file, `r${round}`, 20 + round * 7))
        acknowledged.set(name, version);
    }
    const store = createStore({ file });
    const missing = [...acknowledged].filter(
      ([name, version]) => store.get({ collection: 'configmaps', namespace: 'default', name })?.version !== version,
    );
    const versions = [...acknowledged.values()];
    store.close();
    expect(acknowledged.size).toBeGreaterThanOrEqual(rounds * 20);
    expect(missing).toEqual([]);
    expect(versions).toEqual(versions.toSorted((a, b) => a - b));
  });
});

describe('a store whose machine loses power', () => {
  test('has what was written a second before: it is in the database file by then, synced', async () => {
    const folder = await mkdtemp(join(tmpdir(), 'store-'));
    const file = join(folder, 'state.db');
    const store = createStore({ file });
    const key = { collection: 'configmaps', namespace: 'default', name: 'a' };
    store.create(key, { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'a', namespace: 'default' } });
    /** The content without the log, which may be lost in a power cut. */
    const survives = (): boolean => {
      const copied = join(folder, 'copy.db');
      copyFileSync(file, copied);
      const copy = createStore({ file: copied });
      const found = copy.get(key) !== undefined;
      copy.close();
      for (const suffix of ['', '-wal', '-shm']) rmSync(`${copied}${suffix}`, { force: true });
      return found;
    };
    // In the same step: the store had no chance to sync, however slow the machine is.
    expect(survives()).toBe(false);
    await expect.poll(survives, { interval: 200 }).toBe(true);
    store.close();
    await rm(folder, { recursive: true, force: true });
  });
});
