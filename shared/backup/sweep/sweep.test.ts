// What a sweep deletes, and what it must never delete, in whatever order other processes do their work meanwhile.
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import fc from 'fast-check';
import { afterAll, beforeEach, describe, expect, it } from 'vitest';
import { dataPrefix, metadataPrefix, sweepMarkKey } from '#shared/backup/place.ts';
import { type ImageMetadata, parseMetadata, serializeMetadata } from '#shared/backup/metadata.ts';
import { graceMs, keepForAWhile, outsideSweeps } from './plan.ts';
import type { Garbage, OwnBackups } from '#shared/backup/sweep/look.ts';
import { lookForGarbage } from '#shared/backup/sweep/look.ts';
import { announcedMs, sweepTarget } from '#shared/backup/sweep/sweep.ts';
import type { Store } from '#shared/clients/store/store.ts';
import { Unavailable } from '#shared/runtime/errors.ts';
import { chunkKey, indexKey, parseIndex } from '#shared/transfer/chunks/chunk-index.ts';
import { sweepKey } from '#shared/transfer/chunks/sweeps.ts';
import { writeChunks } from '#shared/transfer/chunks/write.ts';
import { type MemoryStore, createMemoryStore } from '#test/support/memory-store.ts';
import { effort, fuzzTimeout } from '#test/support/random.ts';

const chunkBytes = 64 * 1024;
const dir = mkdtempSync(join(tmpdir(), 'bullion-sweep-'));
afterAll(() => rmSync(dir, { recursive: true }));

/** A disk of one chunk for each letter. */
const diskFile = (letters: string): string => {
  const path = join(dir, letters);
  writeFileSync(path, Buffer.concat(Array.from(letters, (letter) => Buffer.alloc(chunkBytes, letter))));
  return path;
};
for (const letters of ['ab', 'bc', 'cd', 'ad', 'ae']) diskFile(letters);

const nobody: OwnBackups = { keys: new Set(), disks: new Set() };

const write = async (store: Store, letters: string, pause?: () => Promise<void>): Promise<string> => {
  const { disk } = await writeChunks({
    path: join(dir, letters),
    store,
    prefix: dataPrefix,
    chunkBytes,
    backOff: { retries: 3, onRetry: () => {} },
    signal: new AbortController().signal,
    onProgress: () => {},
    ...(pause === undefined ? {} : { pause }),
  });
  return disk;
};

const metadataOf = (name: string, disk: string): ImageMetadata => ({
  version: 1,
  image: { apiVersion: 'g/v1', kind: 'K', namespace: 'default', name, uid: `uid-${name}`, cluster: 'c' },
  backend: 'csi',
  displayName: name,
  spec: {},
  data: { kept: 'chunks', disk },
});
const keyOf = (name: string): string => `${metadataPrefix}default-${name}/vmimage-metadata.yaml`;
const put = (store: Store, name: string, disk: string): Promise<string> =>
  store.write(keyOf(name), serializeMetadata(metadataOf(name, disk)));

const sweeping = (store: Store, over: { wait?: () => Promise<void>; own?: OwnBackups; now?: () => number } = {}) =>
  sweepTarget({
    store,
    own: () => Promise.resolve(over.own ?? nobody),
    by: 'a test',
    now: over.now ?? Date.now,
    wait: over.wait ?? (() => Promise.resolve()),
    signal: new AbortController().signal,
    say: () => {},
  });

/** What metadata names and is not there, or not whole. */
const missing = ({ objects }: MemoryStore): readonly string[] =>
  [...objects.entries()].flatMap(([key, bytes]) => {
    const parsed = key.endsWith('.yaml') && key.startsWith(metadataPrefix) ? parseMetadata(bytes) : undefined;
    if (parsed === undefined || !('value' in parsed) || parsed.value.data.kept !== 'chunks') return [];
    const table = objects.get(indexKey(dataPrefix, parsed.value.data.disk));
    const index = table === undefined ? undefined : parseIndex(table);
    if (index === undefined) return [`${key}: table`];
    const gone = index.chunks.filter((chunk) => chunk !== null && !objects.has(chunkKey(dataPrefix, chunk)));
    return gone.map((chunk) => `${key}: ${chunk}`);
  });
const dataKeys = ({ objects }: MemoryStore): readonly string[] =>
  [...objects.keys()].filter((key) => key.startsWith(dataPrefix) && key !== sweepKey(dataPrefix));

let store: MemoryStore;
const age = (ms: number): void => {
  store.clock += ms;
};

beforeEach(() => {
  store = createMemoryStore();
});

describe('a sweep', () => {
  it('deletes the tables and chunks that no metadata refers to, and nothing else', async () => {
    const kept = await write(store, 'bc');
    await put(store, 'bc', kept);
    const lost = await write(store, 'ab');
    await store.write(`${dataPrefix}notes.txt`, Buffer.from('of an operator'));
    age(graceMs);
    const { tables, chunks } = await sweeping(store);
    expect(tables.map(({ key }) => key)).toEqual([indexKey(dataPrefix, lost)]);
    expect(chunks).toHaveLength(1);
    expect(missing(store)).toEqual([]);
    expect(dataKeys(store)).toHaveLength(1 + 2 + 1);
    // Nothing of the sweep itself is left among the metadata, and backups go on.
    expect([...store.objects.keys()].filter((key) => key.includes('~'))).toEqual([]);
    expect(await outsideSweeps(store, Date.now(), () => Promise.resolve(1))).toEqual({ is: 'sound', value: 1 });
  });

  it('keeps recent data: a backup in progress, a table whose metadata is not written yet', async () => {
    await put(store, 'x', 'f'.repeat(64));
    await write(store, 'ab');
    store.objects.delete([...store.objects.keys()].find((key) => key.includes('/disks/'))!);
    await write(store, 'cd');
    age(graceMs - 1);
    expect(await sweeping(store)).toMatchObject({ tables: [], chunks: [] });
    age(1);
    expect((await sweeping(store)).chunks).toHaveLength(4);
  });

  it('keeps what this cluster uses, and what was released a moment ago', async () => {
    const [own, other] = [await write(store, 'ab'), await write(store, 'cd')];
    await put(store, 'x', await write(store, 'bc'));
    age(graceMs);
    await keepForAWhile(store, other);
    const { tables } = await sweeping(store, { own: { keys: new Set(), disks: new Set([own]) } });
    expect(tables).toEqual([]);
  });

  it('lists without deleting in a dry run', async () => {
    await write(store, 'ab');
    await put(store, 'x', await write(store, 'bc'));
    const before = new Map(store.objects);
    const observed = await lookForGarbage(store, () => Promise.resolve(nobody), { now: store.clock + graceMs });
    expect([observed.tables.length, observed.chunks.length, observed.staying]).toEqual([1, 1, 1]);
    expect(new Map(store.objects)).toEqual(before);
  });

  it.each<[string, string, () => void, OwnBackups?]>([
    ['a listing that is empty', 'is incomplete', () => void (store.isBlind = true)],
    [
      'a listing that breaks off',
      'is incomplete',
      () => {
        const whole = store.list.bind(store);
        store.list = async function* list(prefix) {
          for await (const one of whole(prefix)) if (!one.key.includes('sweep')) yield one;
        };
      },
    ],
    ['missing metadata', 'is empty although', () => void store.objects.delete(keyOf('x'))],
    [
      'metadata that cannot be read',
      'may refer to any disk',
      () => void store.objects.set(keyOf('torn'), Buffer.from('version: 1\nimage:')),
    ],
    [
      'metadata of a later release',
      'may refer to any disk',
      () => void store.objects.set(keyOf('later'), Buffer.from('version: 2\n')),
    ],
    [
      'a table that is damaged',
      'may refer to any chunk',
      () => void store.objects.set(indexKey(dataPrefix, 'f'.repeat(64)), Buffer.from('{"bullion"')),
    ],
    [
      'metadata of its own that is not listed',
      'of this cluster',
      () => {},
      { keys: new Set([keyOf('own')]), disks: new Set() },
    ],
    [
      'a store that rejects requests',
      '503',
      () => {
        store.fault = (verb, key) => (verb === 'read' && key === keyOf('x') ? new Error('503') : undefined);
      },
    ],
  ])('deletes nothing because of %s', async (_, words, spoil, own = nobody) => {
    await put(store, 'x', await write(store, 'bc'));
    await write(store, 'ab');
    age(graceMs);
    store.times.set(indexKey(dataPrefix, 'f'.repeat(64)), store.clock);
    const before = dataKeys(store).length;
    spoil();
    await expect(sweeping(store, { own })).rejects.toThrow(words);
    expect(dataKeys(store).length).toBeGreaterThanOrEqual(before);
    expect(store.calls.filter((call) => call.startsWith(`remove ${dataPrefix}`))).toEqual([]);
  });

  it('resumes an interrupted sweep, and removes its mark', async () => {
    await put(store, 'x', await write(store, 'bc'));
    await write(store, 'ab');
    age(graceMs);
    store.objects.set(sweepMarkKey('~'), Buffer.from('of a sweep that died'));
    expect((await sweeping(store)).tables).toHaveLength(1);
    expect([...store.objects.keys()].filter((key) => key.includes('~'))).toEqual([]);
  });

  it('reports its end only once none of its requests is in flight', async () => {
    await put(store, 'x', await write(store, 'bc'));
    for (const letters of ['ab', 'cd', 'ae']) await write(store, letters);
    age(graceMs);
    const { promise: letGo, resolve: goOn } = Promise.withResolvers<void>();
    let asked = 0;
    const failing: Store = {
      ...store,
      remove: async (key) => {
        if (key.startsWith(dataPrefix)) {
          asked += 1;
          if (asked === 1) throw new Unavailable('503');
          await letGo;
        }
        await store.remove(key);
      },
    };
    const swept = sweeping(failing);
    swept.catch(() => {});
    await expect.poll(() => asked).toBe(3);
    await new Promise((resolve) => setTimeout(resolve, 20));
    expect(store.objects.get(sweepKey(dataPrefix))?.toString()).toContain('"sweeping"');
    goOn();
    await expect(swept).rejects.toThrow('503');
    expect(store.objects.get(sweepKey(dataPrefix))?.toString()).toContain('"over"');
    // Tables come first: not one chunk has gone.
    expect(asked).toBe(3);
  });

  it('starts no deletion after its deadline, even if its machine was suspended in the middle', async () => {
    await put(store, 'x', await write(store, 'bc'));
    const garbage = Array.from({ length: 100 }, (_, index) => String(index).padStart(64, '0'));
    for (const digest of garbage) store.objects.set(chunkKey(dataPrefix, digest), Buffer.from('old'));
    age(graceMs);
    let clock = Date.now();
    const sleepy: Store = {
      ...store,
      remove: async (key) => {
        await store.remove(key);
        if (key.startsWith(dataPrefix)) clock += 5 * 3_600_000;
      },
    };
    await expect(sweeping(sleepy, { now: () => clock })).rejects.toThrow('time limit');
    const gone = garbage.filter((digest) => !store.objects.has(chunkKey(dataPrefix, digest)));
    // Those that were under way at the time.
    expect(gone.length).toBeGreaterThan(0);
    expect(gone.length).toBeLessThan(10);
  });

  it('runs once at a time, and an interrupted sweep expires', async () => {
    let clock = Date.now();
    const now = () => clock;
    const died = sweeping(store, { now, wait: () => new Promise(() => {}) });
    void died;
    await expect.poll(() => store.objects.has(sweepKey(dataPrefix))).toBe(true);
    await expect(sweeping(store, { now })).rejects.toThrow('is removing unused chunks');
    expect(await outsideSweeps(store, clock, () => Promise.resolve(1))).toMatchObject({ is: 'swept' });
    clock += announcedMs + 4 * 3_600_000;
    expect(await outsideSweeps(store, clock, () => Promise.resolve(1))).toMatchObject({ is: 'sound' });
    await expect(sweeping(store, { now })).resolves.toBeDefined();
  });
});

/** Every call waits until the scheduler lets it go on, before its effect and after it. */
const scheduled = (scheduler: fc.Scheduler, inner: Store): Store => {
  const step = async <T>(work: () => Promise<T>): Promise<T> => {
    await scheduler.schedule(Promise.resolve());
    return work();
  };
  return {
    read: (...given) => step(() => inner.read(...given)),
    sizeOf: (...given) => step(() => inner.sizeOf(...given)),
    write: (...given) => step(() => inner.write(...given)),
    remove: (...given) => step(() => inner.remove(...given)),
    list: async function* list(prefix) {
      for (const one of await step(() => Array.fromAsync(inner.list(prefix)))) yield one;
    },
  };
};

describe('in any order of steps', () => {
  it('no referenced data is ever deleted, and finally all other data is', { timeout: fuzzTimeout }, async () => {
    const play = async (scheduler: fc.Scheduler, isAlive: readonly boolean[]): Promise<void> => {
      store = createMemoryStore();
      // Garbage of long ago, which the writers will find and trust in; and an image whose user deletes it.
      for (const letters of ['ab', 'cd']) await write(store, letters);
      await put(store, 'old', await write(store, 'bc'));
      age(10 * graceMs);
      const unsteady = scheduled(scheduler, store);
      /** The work of a function within one request: a sweep starts only after all of these have ended. */
      const requests = new Set<Promise<unknown>>();
      const request = <T>(work: () => Promise<T>): Promise<T> => {
        const running = work();
        requests.add(running);
        return running.finally(() => requests.delete(running));
      };
      const breathe = () => scheduler.schedule(Promise.resolve());
      const keepImage = async (name: string, letters: string): Promise<void> => {
        for (;;) {
          const disk = await write(unsteady, letters, breathe);
          const done = await request(() =>
            outsideSweeps(unsteady, Date.now(), async () => {
              if (((await unsteady.sizeOf(indexKey(dataPrefix, disk))) ?? 0) === 0) return false;
              await put(unsteady, name, disk);
              return true;
            }),
          );
          if (done.is === 'sound' && done.value) return;
          await breathe();
        }
      };
      const deleteImage = (): Promise<void> =>
        request(async () => {
          const parsed = parseMetadata((await unsteady.read(keyOf('old'), 2 ** 20))!.bytes);
          const { data } = (parsed as { value: ImageMetadata }).value;
          await keepForAWhile(unsteady, data.kept === 'chunks' ? data.disk : '');
          await unsteady.remove(keyOf('old'));
        });
      /** Its announcement is valid as long as the requests that had started by then. */
      const wait = async (): Promise<void> => {
        await Promise.allSettled(requests);
      };
      const sweep = (): Promise<Garbage | undefined> => sweeping(unsteady, { wait }).catch(() => undefined);
      const [first = true, second = true, third = true] = isAlive;
      const all = Promise.all([
        keepImage('one', 'ab'),
        ...(first ? [keepImage('two', 'ad')] : []),
        ...(second ? [deleteImage()] : []),
        ...(third ? [keepImage('three', 'cd')] : []),
        sweep().then(sweep),
      ]);
      await scheduler.waitFor(all);
      expect(missing(store)).toEqual([]);
      age(2 * graceMs);
      await sweeping(store);
      expect(missing(store)).toEqual([]);
      const named = 1 + (first ? 1 : 0) + (second ? 0 : 1) + (third ? 1 : 0);
      expect(dataKeys(store).filter((key) => key.includes('/disks/'))).toHaveLength(named);
    };
    await fc.assert(fc.asyncProperty(fc.scheduler(), fc.array(fc.boolean(), { minLength: 3, maxLength: 3 }), play), {
      numRuns: 10 * effort,
    });
  });
});
