import { mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { createFolderStore } from '#shared/clients/store/folder.ts';
import { type Store, isTaken } from '#shared/clients/store/store.ts';
import { startBackupStore } from '#test/support/backup.ts';

const dir = mkdtempSync(join(tmpdir(), 'bullion-store-'));
const folder = mkdtempSync(join(dir, 'folder-'));
let closeBucket: () => Promise<void>;
const stores = new Map<string, Store>([['a folder', createFolderStore(folder)]]);

beforeAll(async () => {
  const { store, close } = await startBackupStore(join(dir, 'bucket'));
  stores.set('a bucket', store);
  closeBucket = close;
});
afterAll(async () => {
  await closeBucket();
  rmSync(dir, { recursive: true, force: true });
});

const taken = (work: Promise<unknown>): Promise<boolean> => work.then(() => false, isTaken);
const bytes = (text: string) => Buffer.from(text);

describe.each(['a folder', 'a bucket'])('%s as a store', (name) => {
  const store = () => stores.get(name)!;

  it('returns what was written to it', async () => {
    const revision = await store().write('a/b', bytes('one'), 'nothing');
    expect(await store().read('a/b', 100)).toEqual({ bytes: bytes('one'), revision });
    expect(await store().sizeOf('a/b')).toBe(3);
    expect(await store().read('a/c', 100)).toBeUndefined();
    expect(await store().sizeOf('a/c')).toBeUndefined();
    await expect(store().read('a/b', 2)).rejects.toThrow('3 bytes');
  });

  it('overwrites only what was read', async () => {
    const first = await store().write('c/d', bytes('one'));
    expect(await taken(store().write('c/d', bytes('two'), 'nothing'))).toBe(true);
    const second = await store().write('c/d', bytes('two'), { revision: first });
    expect(await taken(store().write('c/d', bytes('three'), { revision: first }))).toBe(true);
    expect((await store().read('c/d', 100))?.revision).toBe(second);
    await store().remove('c/d');
    await store().remove('c/d');
    expect(await taken(store().write('c/d', bytes('four'), { revision: second }))).toBe(true);
  });

  it('accepts one of several concurrent writers of a name', async () => {
    const writes = Array.from({ length: 5 }, (_, index) => taken(store().write('race', bytes(`${index}`), 'nothing')));
    expect((await Promise.all(writes)).filter((isLost) => !isLost)).toHaveLength(1);
  });

  it('lists the names with a prefix', async () => {
    for (const key of ['l/x/1', 'l/x/2', 'l/y', 'm']) await store().write(key, bytes('x'));
    const keys = (await Array.fromAsync(store().list('l/x'))).map(({ key }) => key);
    expect(keys).toEqual(['l/x/1', 'l/x/2']);
  });
});

describe('a folder as a store', () => {
  it('is reported as down, and not as empty, when it is not mounted', async () => {
    const store = createFolderStore(join(dir, 'absent'));
    await expect(Array.fromAsync(store.list(''))).rejects.toMatchObject({ retryable: true });
    await expect(store.read('a', 10)).rejects.toMatchObject({ retryable: true });
    await expect(store.write('a', bytes('x'))).rejects.toMatchObject({ retryable: true });
    expect(readdirSync(dir)).not.toContain('absent');
  });

  it('reports errors of the file system as retryable, in listings too', async () => {
    const store = createFolderStore(folder);
    const long = `${'x'.repeat(300)}/`;
    await expect(Array.fromAsync(store.list(long))).rejects.toMatchObject({ retryable: true });
    await expect(store.sizeOf(`${long}y`)).rejects.toMatchObject({ retryable: true });
  });

  it('does not leave its folder', async () => {
    const store = createFolderStore(folder);
    for (const key of ['../x', 'a/../../x', '/x', 'a//b'])
      await expect(store.read(key, 10)).rejects.toThrow('is not a valid key');
  });
});
