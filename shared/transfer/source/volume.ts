// Another volume as a source: a guest's raw disk, on a device or as `disk.img`. What a guest wrote is never looked into: a disk that begins
// like a qcow2 file is copied as it is.
import { constants } from 'node:fs';
import { type FileHandle, open } from 'node:fs/promises';
import { interrupted, sourceOf } from '#shared/transfer/source/handle.ts';
import type { Source } from '#shared/transfer/source/source.ts';
import type { VolumeSource } from '#shared/transfer/spec.ts';

/** Seeking tells the size of files and of devices alike; `stat` calls a device empty. */
export const sizeOf = async (file: FileHandle): Promise<number> => {
  const found = await file.stat();
  if (found.isFile()) return found.size;
  const one = Buffer.alloc(1);
  const hasByte = async (at: number): Promise<boolean> => (await file.read(one, 0, 1, at)).bytesRead === 1;
  let low = 0;
  let high = 1;
  while (await hasByte(high - 1)) [low, high] = [high, high * 2];
  while (high - low > 1) {
    const middle = Math.floor((low + high) / 2);
    if (await hasByte(middle - 1)) low = middle;
    else high = middle;
  }
  return low;
};

/** Opened read-only. Throws TransferError when there is no disk. */
export const openVolume = async ({ path }: VolumeSource, signal: AbortSignal): Promise<Source> => {
  const what = `the source volume at ${path}`;
  // Whoever could write to the volume could have made its disk a link to a file of ours.
  const file = await open(path, constants.O_RDONLY | constants.O_NOFOLLOW).catch((error: unknown) => {
    throw interrupted(what, error);
  });
  return sourceOf({ file, size: await sizeOf(file), what, isGuestDisk: true }, signal);
};
