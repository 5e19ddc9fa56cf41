// Bytes that backups of one image send: as one object, and in chunks of several sizes. Counted, not timed.
import { constants } from 'node:fs';
import { copyFile, mkdtemp, open, rm, stat } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createFolderStore } from '#shared/clients/store/folder.ts';
import type { Store } from '#shared/clients/store/store.ts';
import { writeChunks } from '#shared/transfer/chunks/write.ts';
import { runTool } from '#shared/transfer/tool/run-tool.ts';
import { toTable } from '#test/bench/table.ts';
import { makeDisk } from '#test/bench/transfer/images.ts';
import { createRandom } from '#test/support/random.ts';

const mib = 2 ** 20;

/** What a night of updates does to a disk: small writes all over the data, and a package laid down in one piece. */
const change = async (path: string): Promise<void> => {
  const random = createRandom(1);
  const { size } = await stat(path);
  const file = await open(path, 'r+');
  try {
    const block = Buffer.alloc(4096, 'changed ');
    for (let count = 0; count < 40; count += 1) {
      // The first third of the disk is where its data is.
      const offset = Math.floor(random.below(size / 3) / 4096) * 4096;
      await file.write(block, 0, block.length, offset);
    }
    const piece = Buffer.alloc(20 * mib);
    for (let at = 0; at < piece.length; at += 4) piece.writeUInt32LE(random.below(2 ** 31), at);
    await file.write(piece, 0, piece.length, Math.floor(size / 4096 / 4) * 4096);
  } finally {
    await file.close();
  }
};

const counted = (store: Store) => {
  const calls = { writes: 0, looks: 0 };
  const counting: Store = {
    ...store,
    write: (...given) => {
      calls.writes += 1;
      return store.write(...given);
    },
    sizeOf: (key) => {
      calls.looks += 1;
      return store.sizeOf(key);
    },
  };
  return { calls, store: counting };
};

const inChunks = async (disks: readonly string[], chunkBytes: number, dir: string): Promise<readonly string[]> => {
  const { calls, store } = counted(createFolderStore(await mkdtemp(join(dir, 'store-'))));
  const sent: number[] = [];
  for (const path of disks) {
    const made = await writeChunks({
      path,
      store,
      prefix: 'b/',
      chunkBytes,
      backOff: { retries: 0, onRetry: () => {} },
      signal: new AbortController().signal,
      onProgress: () => {},
    });
    sent.push(made.sentBytes);
  }
  return [`chunks of ${chunkBytes / mib} MiB`, ...sent.map(inMib), String(calls.writes), String(calls.looks)];
};

const inMib = (bytes: number): string => (bytes / mib).toFixed(1);

/** Named by its content, so that an unchanged disk is found; a changed one is sent whole. */
const asOneObject = async (
  [first = '', , changed = '']: readonly string[],
  dir: string,
): Promise<readonly string[]> => {
  const sizes: number[] = [];
  for (const path of [first, changed]) {
    const out = join(dir, 'one.qcow2');
    const args = ['convert', '-f', 'raw', '-O', 'qcow2', '-c', '-o', 'compression_type=zstd', path, out];
    const { status, complaint } = await runTool({ program: 'qemu-img', args, signal: new AbortController().signal });
    if (status !== 0) throw new Error(complaint);
    sizes.push((await stat(out)).size);
    await rm(out);
  }
  return ['one qcow2 (zstd)', inMib(sizes[0] ?? 0), '0.0', inMib(sizes[1] ?? 0), '-', '-'];
};

export const run = async (): Promise<void> => {
  const raw = makeDisk(join(tmpdir(), 'bullion-bench-fast'), 'fast');
  const dir = await mkdtemp(join(tmpdir(), 'bullion-backup-bench-'));
  try {
    const changed = join(dir, 'changed.raw');
    await copyFile(raw, changed, constants.COPYFILE_FICLONE);
    await change(changed);
    const disks = [raw, raw, changed];
    const rows = [await asOneObject(disks, dir)];
    for (const size of [1, 2, 4, 8, 16]) {
      rows.push(await inChunks(disks, size * mib, dir));
    }
    console.log(toTable([['MiB sent', 'first', 'unchanged', 'changed', 'objects written', 'looks'], ...rows]));
  } finally {
    await rm(dir, { recursive: true, force: true });
  }
};
