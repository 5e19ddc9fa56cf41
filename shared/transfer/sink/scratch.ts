// Scratch space: a file for data that cannot be written to the target yet.
import { type FileHandle, mkdir, mkdtemp, open, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { readFully } from '#shared/transfer/file-bytes.ts';
import { writing } from '#shared/transfer/fault.ts';
import type { DiskReader } from '#shared/transfer/format/disk.ts';

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
