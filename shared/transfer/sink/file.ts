// A guest's disk as a sparse file: written under a temporary name, renamed once it is complete.
import { chmod, type FileHandle, mkdir, mkdtemp, open, rename, rm, stat } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { writing } from '#shared/transfer/fault.ts';
import { readFully } from '#shared/transfer/file-bytes.ts';
import type { DiskReader } from '#shared/transfer/format/disk.ts';
import { createFileJournal, syncDirectory } from '#shared/transfer/resume/journal.ts';
import { createBlockSink } from './block.ts';
import type { Sink } from './sink.ts';
import { allocate, createSlot } from './writer.ts';
import type { TransferTarget } from '#shared/transfer/spec.ts';

// Creates the sink for a target.

/** Nothing is changed before the sink's `prepare`. Throws TransferError if the device does not exist. */
export const openSink = async (target: TransferTarget, signal: AbortSignal): Promise<Sink> =>
  target.volumeMode === 'Block' ? createBlockSink(target, signal) : createFileSink(target, signal);

/** The process of the virtual machine runs as another user of the same group. */
const diskMode = 0o660;

const sizeOf = (path: string): Promise<number | undefined> =>
  stat(path).then(
    ({ size }) => size,
    () => undefined,
  );

const show = async (path: string, as: string): Promise<void> => {
  await chmod(path, diskMode);
  await rename(path, as);
  await syncDirectory(dirname(as));
};

interface Extent {
  readonly path: string;
  readonly bytes: number;
}

const extend = async (
  file: FileHandle,
  { path, bytes }: Extent,
  { preallocated }: TransferTarget,
  signal: AbortSignal,
): Promise<void> => {
  await file.truncate(bytes);
  if (preallocated === true) await allocate(path, bytes, signal);
};

/** Fills `<path>.partial`; an older disk at `path` is removed first, because it would use the space of the new one. */
export const createFileSink = (target: TransferTarget, signal: AbortSignal): Sink => {
  const path = `${target.path}.partial`;
  const slot = createSlot(path);
  const journal = createFileJournal(`${path}.journal`);
  const abandon = async (): Promise<void> => {
    await slot.close();
    await journal.remove().catch(() => {});
    await rm(path, { force: true }).catch(() => {});
  };
  return {
    path,
    limitBytes: target.capacityBytes,
    prepare: (size) =>
      writing(path, async () => {
        await slot.close();
        // The journal goes first, before the data it describes.
        await journal.remove();
        await rm(target.path, { force: true });
        await rm(path, { force: true });
        const file = await slot.open('wx+', diskMode);
        await file.truncate(size);
      }),
    reopen: (size) =>
      writing(path, async () => {
        const text = await journal.read();
        if (text === undefined || (await sizeOf(path)) !== size) return undefined;
        await slot.open('r+');
        return text;
      }),
    journal: () => journal,
    file: () => slot.require().file,
    write: (bytes, position) => slot.require().writer.write(bytes, position),
    writtenBytes: () => slot.writtenBytes(),
    flush: () => slot.require().writer.flush(),
    commit: (size) =>
      writing(path, async () => {
        const { file, writer } = slot.require();
        await writer.finish();
        await extend(file, { path, bytes: Math.max(size, target.diskBytes ?? 0) }, target, signal);
        await file.sync();
        await journal.remove();
        await show(path, target.path);
        await slot.close();
      }),
    suspend: async () => {
      if ((await journal.read()) === undefined) await abandon();
      else await slot.close();
    },
    abandon,
  };
};

// Scratch space: a file for data that cannot be written to the target yet.

export const fileReader = (file: FileHandle, size: number): DiskReader => ({
  size,
  read: async (offset, length) => {
    const wanted = Math.max(0, Math.min(length, size - offset));
    const bytes = Buffer.allocUnsafe(wanted);
    return bytes.subarray(0, await readFully(file, bytes, offset));
  },
});

export interface Scratch {
  readonly path: string;
  readonly file: FileHandle;
}

/** Passes an empty file to `work` and removes it afterwards in any case. */
export const withScratch = async <T>(directory: string, work: (scratch: Scratch) => Promise<T>): Promise<T> => {
  const own = await writing(directory, async () => {
    await mkdir(directory, { recursive: true });
    return mkdtemp(join(directory, 'bullion-scratch-'));
  });
  try {
    const path = join(own, 'image');
    const file = await writing(directory, () => open(path, 'wx+'));
    try {
      return await work({ path, file });
    } finally {
      await file.close();
    }
  } finally {
    await rm(own, { recursive: true, force: true });
  }
};
