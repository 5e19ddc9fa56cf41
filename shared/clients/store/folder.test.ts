// A folder on a network: writers who do not know of each other, handles that are stale, answers that are lost, disks that are full.
import { mkdirSync, mkdtempSync, readFileSync, readdirSync, rmSync, utimesSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import fc from 'fast-check';
import { afterAll, beforeEach, describe, expect, it } from 'vitest';
import { type FileSystem, fileSystem } from './folder-write.ts';
import { createFolderStore } from '#shared/clients/store/folder.ts';
import { type Store, isTaken } from '#shared/clients/store/store.ts';

const dir = mkdtempSync(join(tmpdir(), 'bullion-folder-'));
let root: string;
afterAll(() => rmSync(dir, { recursive: true }));
beforeEach(() => {
  root = mkdtempSync(join(dir, 'export-'));
});

const bytes = (text: string): Buffer => Buffer.from(text);
const failure = (code: string): Error => Object.assign(new Error(`${code}: as NFS says it`), { code });
const filesIn = (folder: string): readonly string[] => readdirSync(join(root, folder)).toSorted();
/** `before` is called before each call, and may throw instead. */
const files = (before: (name: keyof FileSystem, ...args: unknown[]) => unknown): FileSystem =>
  new Proxy(fileSystem, {
    get:
      (target, name: keyof FileSystem) =>
      // oxlint-disable-next-line typescript/no-unsafe-return
      async (...args: unknown[]) => {
        await before(name, ...args);
        return Reflect.apply(target[name] as (...given: unknown[]) => unknown, target, args);
      },
  });

describe('two writers of one key', () => {
  /** Increments a counter as often as requested, and overwrites only what was read. */
  const countUp = async (store: Store, times: number): Promise<void> => {
    for (let done = 0; done < times;) {
      const before = (await store.read('a/count', 100))!;
      try {
        await store.write('a/count', bytes(String(Number(before.bytes.toString()) + 1)), { revision: before.revision });
        done += 1;
      } catch (error) {
        if (!isTaken(error) && !(error as { retryable?: boolean }).retryable) throw error;
      }
    }
  };

  it('never lose each other’s writes', { timeout: 240_000 }, async () => {
    const stores = Array.from({ length: 4 }, () => createFolderStore(root));
    await stores[0]!.write('a/count', bytes('0'));
    await Promise.all(stores.map((store) => countUp(store, 8)));
    expect((await stores[0]!.read('a/count', 100))?.bytes.toString()).toBe('32');
    expect(filesIn('a')).toEqual(['count']);
  });

  it('never lose a write in any order of their steps', { timeout: 240_000 }, async () => {
    await fc.assert(
      fc.asyncProperty(fc.scheduler(), async (scheduler) => {
        root = mkdtempSync(join(dir, 'order-'));
        await createFolderStore(root).write('a/count', bytes('0'));
        const step = () => scheduler.schedule(Promise.resolve());
        const writers = [1, 2].map(() => countUp(createFolderStore(root, files(step)), 2));
        await scheduler.waitFor(Promise.all(writers));
        expect(readFileSync(join(root, 'a', 'count'), 'utf8')).toBe('4');
      }),
      { numRuns: 25 },
    );
  });

  it('take over the lock of a process that died, and wait for one that is alive', async () => {
    const store = createFolderStore(root);
    const revision = await store.write('a/b', bytes('one'));
    const lock = join(root, 'a', '.draft-lock-b');
    writeFileSync(lock, 'somebody');
    await expect(store.write('a/b', bytes('two'), { revision })).rejects.toMatchObject({ retryable: true });
    expect((await store.read('a/b', 100))?.bytes.toString()).toBe('one');
    const longAgo = new Date(Date.now() - 120_000);
    utimesSync(lock, longAgo, longAgo);
    await store.write('a/b', bytes('two'), { revision });
    expect((await store.read('a/b', 100))?.bytes.toString()).toBe('two');
    expect(filesIn('a')).toEqual(['b']);
  });

  it('do not write after their lock was considered stale', async () => {
    const revision = await createFolderStore(root).write('a/b', bytes('one'));
    const lock = join(root, 'a', '.draft-lock-b');
    let isDone = false;
    const slow = createFolderStore(
      root,
      files((name, path) => {
        if (name !== 'readFile' || path !== join(root, 'a', 'b') || isDone) return;
        isDone = true;
        rmSync(lock);
        writeFileSync(lock, 'another one');
      }),
    );
    await expect(slow.write('a/b', bytes('two'), { revision })).rejects.toMatchObject({ retryable: true });
    expect(readFileSync(join(root, 'a', 'b'), 'utf8')).toBe('one');
    // It does not release a lock of another process either.
    expect(filesIn('a')).toEqual(['.draft-lock-b', 'b']);
  });
});

describe('a faulty mount', () => {
  /** Fails the first `times` calls of this name. */
  const failing = (name: keyof FileSystem, code: string, times: number): Store => {
    let left = times;
    return createFolderStore(
      root,
      files((called) => {
        if (called === name && left-- > 0) throw failure(code);
      }),
    );
  };

  it.each<keyof FileSystem>(['stat', 'readFile', 'open', 'link', 'rename', 'mkdir'])(
    'resolves a name again when its handle is stale: %s',
    async (name) => {
      const store = failing(name, 'ESTALE', 1);
      const revision = await store.write('a/b', bytes('one'), 'nothing');
      await failing(name, 'ESTALE', 1).write('a/b', bytes('two'), { revision });
      expect((await failing(name, 'ESTALE', 2).read('a/b', 10))?.bytes.toString()).toBe('two');
      expect(await failing(name, 'ESTALE', 1).sizeOf('a/b')).toBe(3);
      expect((await Array.fromAsync(failing(name, 'ESTALE', 1).list('a/'))).map(({ key }) => key)).toEqual(['a/b']);
      expect(filesIn('a')).toEqual(['b']);
    },
  );

  it('is reported as retryable while file handles stay stale', async () => {
    await expect(failing('stat', 'ESTALE', 99).read('a', 10)).rejects.toMatchObject({ retryable: true });
  });

  it.each<[string, keyof FileSystem, string]>([
    ['the disk is full', 'open', 'ENOSPC'],
    ['the server is gone', 'link', 'EIO'],
    ['it is read-only by now', 'mkdir', 'EROFS'],
  ])('has neither the file nor a draft when %s', async (_, name, code) => {
    mkdirSync(join(root, 'a'));
    await expect(failing(name, code, 1).write('a/b', bytes('one'), 'nothing')).rejects.toMatchObject({
      retryable: true,
    });
    expect(filesIn('a')).toEqual([]);
  });

  it('shows nothing of an interrupted write, and accepts it the next time', async () => {
    mkdirSync(join(root, 'a'));
    writeFileSync(join(root, 'a', '.draft-of-a-dead-writer'), 'half of o');
    const store = createFolderStore(root);
    expect(await Array.fromAsync(store.list('a/'))).toEqual([]);
    expect(await store.read('a/b', 10)).toBeUndefined();
    await store.write('a/b', bytes('one'), 'nothing');
    expect((await store.read('a/b', 10))?.bytes.toString()).toBe('one');
    await store.tidy?.('a/', Date.now() - 60_000);
    expect(filesIn('a')).toEqual(['.draft-of-a-dead-writer', 'b']);
    await store.tidy?.('a/', Date.now() + 60_000);
    expect(filesIn('a')).toEqual(['b']);
  });

  /** The call took effect, its response was lost, and it is sent again: the second one is rejected. */
  const lost = (name: 'link' | 'rename', code: string): Store => {
    let isFirst = true;
    return createFolderStore(
      root,
      files(async (called, ...args) => {
        if (called !== name || !isFirst) return;
        isFirst = false;
        await fileSystem[name](...(args as [string, string]));
        throw failure(code);
      }),
    );
  };

  it('recognizes its own write by the content when the answer was lost', async () => {
    const revision = await lost('link', 'EEXIST').write('a/b', bytes('one'), 'nothing');
    const next = await lost('rename', 'ENOENT').write('a/b', bytes('two'), { revision });
    expect(await lost('link', 'EEXIST').write('a/b', bytes('three'), { revision: next })).toBeDefined();
    expect((await createFolderStore(root).read('a/b', 10))?.bytes.toString()).toBe('three');
    expect(filesIn('a')).toEqual(['b']);
    expect(
      await createFolderStore(root)
        .write('a/b', bytes('x'), 'nothing')
        .then(() => false, isTaken),
    ).toBe(true);
  });
});
