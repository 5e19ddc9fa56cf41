import { randomBytes } from 'node:crypto';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { open } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { createFolderStore } from '#shared/clients/store/folder.ts';
import type { Store } from '#shared/clients/store/store.ts';
import { Denied, Unavailable } from '#shared/runtime/errors.ts';
import { indexKey, parseIndex } from '#shared/transfer/chunks/chunk-index.ts';
import { type WrittenChunks, usualChunkBytes as chunkBytes, writeChunks } from '#shared/transfer/chunks/write.ts';
import { runTransfer } from '#shared/transfer/run.ts';
import { TransferSpec } from '#shared/transfer/spec.ts';

const prefix = 'backups/';
const mib = 2 ** 20;

describe('a disk in chunks', { timeout: 240_000 }, () => {
  let root: string;
  let disk: string;
  let place: string;
  let count = 0;
  beforeAll(() => {
    root = mkdtempSync(join(tmpdir(), 'bullion-chunks-'));
  });
  afterAll(() => rmSync(root, { recursive: true, force: true }));

  /** 22 MiB and one sector: data, a hole, data twice the same, an end that fills no chunk. */
  const makeDisk = () => {
    place = mkdtempSync(join(root, 'store-'));
    disk = join(root, `disk-${count++}.img`);
    const same = randomBytes(chunkBytes);
    writeFileSync(
      disk,
      Buffer.concat([randomBytes(mib), Buffer.alloc(7 * mib), same, same, randomBytes(6 * mib + 512)]),
    );
    return readFileSync(disk);
  };
  const backOff = { retries: 2, onRetry: () => {}, wait: () => Promise.resolve() };
  const back = (store: Store): Promise<WrittenChunks> =>
    writeChunks({ path: disk, store, prefix, backOff, signal: new AbortController().signal, onProgress: () => {} });
  const restore = async (key: string) => {
    const target = join(mkdtempSync(join(root, 'target-')), 'disk.img');
    const spec = TransferSpec.parse({
      mode: 'import',
      source: { type: 'folder', dir: place, key },
      target: { path: target, volumeMode: 'Filesystem', capacityBytes: 64 * mib },
      scratchDir: join(root, 'scratch'),
      limits: { idleSeconds: 20, totalSeconds: 240, retries: 0 },
    });
    const signal = new AbortController().signal;
    const report = await runTransfer(spec, { run: 'run', signal, send: () => Promise.resolve(), log: () => {} });
    return { report, target };
  };
  const keysOf = async (store: Store) => (await Array.fromAsync(store.list(prefix))).map(({ key }) => key);

  it('is restored unchanged, with each chunk stored once', async () => {
    const bytes = makeDisk();
    const store = createFolderStore(place);
    const made = await back(store);
    // Of 6 chunks one is a hole, and two are the same.
    expect(made).toMatchObject({ size: bytes.length, chunks: 5, newChunks: 4 });
    const { report, target } = await restore(indexKey(prefix, made.disk));
    expect(report).toMatchObject({ outcome: 'succeeded', inspection: { format: 'raw', virtualSize: bytes.length } });
    expect(readFileSync(target).equals(bytes)).toBe(true);
  });

  it('sends nothing for an existing disk, and one chunk for a change', async () => {
    makeDisk();
    const store = createFolderStore(place);
    const first = await back(store);
    expect(await back(store)).toMatchObject({ disk: first.disk, newChunks: 0, sentBytes: 0 });
    const file = await open(disk, 'r+');
    await file.write(Buffer.from('changed'), 0, 7, 9 * mib);
    await file.close();
    const second = await back(store);
    expect(second.newChunks).toBe(1);
    expect(second.disk).not.toBe(first.disk);
    const { target } = await restore(indexKey(prefix, second.disk));
    expect(readFileSync(target).equals(readFileSync(disk))).toBe(true);
  });

  it('refers to nothing that is missing: a store that fails at the last write has no table, and the retry sends only that', async () => {
    makeDisk();
    const store = createFolderStore(place);
    const refusing: Store = {
      ...store,
      write: (key, ...rest) =>
        key.includes('/disks/') ? Promise.reject(new Denied('403 AccessDenied')) : store.write(key, ...rest),
    };
    await expect(back(refusing)).rejects.toThrow('403');
    expect((await keysOf(store)).filter((key) => key.includes('/disks/'))).toEqual([]);
    const healed = await back(store);
    expect(healed.newChunks).toBe(0);
    expect((await restore(indexKey(prefix, healed.disk))).report.outcome).toBe('succeeded');
  });

  it('overwrites what does not match its name: an empty chunk, and a truncated table', async () => {
    makeDisk();
    const store = createFolderStore(place);
    const made = await back(store);
    const keys = await keysOf(store);
    const chunk = keys.find((key) => key.includes('/chunks/'))!;
    writeFileSync(join(place, chunk), '');
    writeFileSync(join(place, indexKey(prefix, made.disk)), '{"bullion"');
    expect(await back(store)).toMatchObject({ disk: made.disk, newChunks: 1 });
    expect((await restore(indexKey(prefix, made.disk))).report.outcome).toBe('succeeded');
  });

  it('repairs a damaged chunk as the message says: once it and the table are deleted', async () => {
    makeDisk();
    const store = createFolderStore(place);
    const made = await back(store);
    const chunk = (await keysOf(store)).find((key) => key.includes('/chunks/'))!;
    writeFileSync(join(place, chunk), 'other bytes');
    const { report } = await restore(indexKey(prefix, made.disk));
    expect(report).toMatchObject({
      reason: 'ImageCorrupt',
      message: expect.stringContaining('remove the damaged object'),
    });
    await store.remove(chunk);
    await store.remove(indexKey(prefix, made.disk));
    expect(await back(store)).toMatchObject({ disk: made.disk, newChunks: 1 });
    expect((await restore(indexKey(prefix, made.disk))).report.outcome).toBe('succeeded');
  });

  it('continues after an outage of the store, and fails after its retries', async () => {
    makeDisk();
    const store = createFolderStore(place);
    let refusals = 0;
    const flaky = (most: number): Store => ({
      ...store,
      write: (...given) =>
        refusals++ < most ? Promise.reject(new Unavailable('503 SlowDown')) : store.write(...given),
    });
    expect((await back(flaky(2))).newChunks).toBe(4);
    makeDisk();
    const fresh = createFolderStore(place);
    const down: Store = { ...fresh, write: () => Promise.reject(new Unavailable('503 SlowDown')) };
    await expect(back(down)).rejects.toMatchObject({ retryable: true });
  });

  it.each<[string, (made: WrittenChunks, key: string) => void, string]>([
    ['a chunk that is missing', (_, chunk) => rmSync(chunk), 'is missing'],
    ['a chunk with other bytes', (_, chunk) => writeFileSync(chunk, readFileSync(chunk).fill(7, 40, 60)), 'chunk'],
    ['an empty chunk', (_, chunk) => writeFileSync(chunk, ''), 'chunk'],
    [
      'a table that was changed',
      ({ disk: name }) => {
        const path = join(place, indexKey(prefix, name));
        writeFileSync(path, readFileSync(path, 'utf8').replace('null', '"' + '0'.repeat(64) + '"'));
      },
      'does not match the digest in its name',
    ],
  ])('is rejected with %s', async (_, spoil, words) => {
    makeDisk();
    const made = await back(createFolderStore(place));
    const table = parseIndex(readFileSync(join(place, indexKey(prefix, made.disk))))!;
    const last = table.chunks.at(-1)!;
    spoil(made, join(place, `${prefix}chunks/${last.slice(0, 2)}/${last}`));
    const { report } = await restore(indexKey(prefix, made.disk));
    expect(report).toMatchObject({
      outcome: 'failed',
      reason: 'ImageCorrupt',
      message: expect.stringContaining(words),
    });
  });
});
