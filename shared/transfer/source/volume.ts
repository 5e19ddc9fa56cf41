// Another volume as a source: a guest's raw disk, on a device or as `disk.img`. What a guest wrote is never looked into: a disk that begins
// like a qcow2 file is copied as it is.
import { constants } from 'node:fs';
import { type FileHandle, open } from 'node:fs/promises';
import { messageOf } from '#shared/runtime/errors.ts';
import { TransferError } from '#shared/transfer/fault.ts';
import { type Source, headBytes } from '#shared/transfer/source/source.ts';
import type { VolumeSource } from '#shared/transfer/spec.ts';

const chunkBytes = 1024 * 1024;

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

const fault = (path: string, error: unknown): TransferError =>
  error instanceof TransferError
    ? error
    : new TransferError('SourceInterrupted', `cannot read the source volume at ${path}: ${messageOf(error)}`, {
        cause: error,
      });

/** Opened read-only. Throws TransferError when there is no disk. */
export const openVolume = async ({ path }: VolumeSource, signal: AbortSignal): Promise<Source> => {
  // Whoever could write to the volume could have made its disk a link to a file of ours.
  const file = await open(path, constants.O_RDONLY | constants.O_NOFOLLOW).catch((error: unknown) => {
    throw fault(path, error);
  });
  let received = 0;
  const readInto = async (offset: number, target: Uint8Array): Promise<void> => {
    signal.throwIfAborted();
    let filled = 0;
    try {
      while (filled < target.length) {
        const { bytesRead } = await file.read(target, filled, target.length - filled, offset + filled);
        if (bytesRead === 0) break;
        filled += bytesRead;
      }
    } catch (error) {
      throw fault(path, error);
    }
    if (filled < target.length) {
      throw new TransferError('SourceChanged', `the source volume at ${path} became shorter`);
    }
    received += target.length;
  };
  const read = async (offset: number, length: number): Promise<Buffer> => {
    const bytes = Buffer.allocUnsafe(length);
    await readInto(offset, bytes);
    return bytes;
  };
  const size = await sizeOf(file);
  return {
    probe: async () => ({
      size,
      head: await read(0, Math.min(headBytes, size)),
      isWhole: size <= headBytes,
      hasRanges: true,
      isPinned: true,
      isGuestDisk: true,
    }),
    read,
    readInto,
    stream: async function* stream() {
      for (let at = 0; at < size; at += chunkBytes) yield await read(at, Math.min(chunkBytes, size - at));
    },
    receivedBytes: () => received,
    close: () => file.close(),
  };
};
