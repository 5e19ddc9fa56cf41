// Local sources: an open file or device, read at any position and never written; a file of a mounted folder, another volume, and an empty disk.
import { type FileHandle, open, stat } from 'node:fs/promises';
import { messageOf } from '#shared/runtime/errors.ts';
import { TransferError, isTransferError, toDeviceFault } from '#shared/transfer/fault.ts';
import { readFully } from '#shared/transfer/file-bytes.ts';
import { type ByteSource, headBytes } from '#shared/transfer/source/source.ts';
import { constants } from 'node:fs';
import { join } from 'node:path';
import type { MountedVolumeSource } from '#shared/transfer/spec.ts';
import { smallestDiskBytes } from '#shared/transfer/format/detect.ts';

const pieceBytes = 1024 * 1024;

export interface OpenFile {
  readonly file: FileHandle;
  /** Bytes. */
  readonly size: number;
  /** For messages. */
  readonly what: string;
  readonly isGuestDisk?: boolean;
}

export const interrupted = (what: string, error: unknown): TransferError =>
  new TransferError('SourceInterrupted', `cannot read ${what}: ${messageOf(error)}`, { cause: error });

const fill = async ({ file, what }: OpenFile, offset: number, target: Uint8Array): Promise<void> => {
  const filled = await readFully(file, target, offset).catch((error: unknown) => {
    throw interrupted(what, error);
  });
  if (filled < target.length) throw new TransferError('SourceChanged', `${what} became shorter`);
};

export const sourceOf = (opened: OpenFile, signal: AbortSignal): ByteSource => {
  const { file, size, isGuestDisk } = opened;
  let received = 0;
  const readInto = async (offset: number, target: Uint8Array): Promise<void> => {
    signal.throwIfAborted();
    await fill(opened, offset, target);
    received += target.length;
  };
  const read = async (offset: number, length: number): Promise<Buffer> => {
    const bytes = Buffer.allocUnsafe(length);
    await readInto(offset, bytes);
    return bytes;
  };
  return {
    probe: async () => ({
      size,
      head: await read(0, Math.min(headBytes, size)),
      isWhole: size <= headBytes,
      hasRanges: true,
      isPinned: true,
      isGuestDisk,
    }),
    read,
    readInto,
    stream: async function* stream() {
      for (let at = 0; at < size; at += pieceBytes) yield await read(at, Math.min(pieceBytes, size - at));
    },
    receivedBytes: () => received,
    close: () => file.close(),
  };
};

/** A file of a mounted folder as a source. Its format is detected by its content, like that of a file on the web. */
const openHandle = async (dir: string, key: string): Promise<FileHandle> => {
  if (key.split('/').includes('..')) throw new TransferError('InvalidSpec', `"${key}" is outside of its folder`);
  try {
    return await open(join(dir, key), constants.O_RDONLY | constants.O_NOFOLLOW);
  } catch (error) {
    const isMissing = error instanceof Error && 'code' in error && error.code === 'ENOENT';
    if (isMissing) throw new TransferError('SourceNotFound', `the mounted folder has no file ${key}`);
    throw new TransferError('SourceUnavailable', `cannot read ${key} in the mounted folder: ${messageOf(error)}`);
  }
};

/** Throws TransferError. */
export const openFile = async (dir: string, key: string, signal: AbortSignal): Promise<ByteSource> => {
  const file = await openHandle(dir, key);
  const { size } = await file.stat();
  return sourceOf({ file, size, what: key }, signal);
};

// Another volume as a source: a guest's raw disk, on a device or as `disk.img`. Content written by a guest is never inspected: a disk that
// starts like a qcow2 file is copied unchanged.

/** Seeking returns the size of both files and devices; `stat` reports 0 for a device. */
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

/**
 * Opened read-only, and never through a link: a writer of the volume could have replaced its disk by a link to another file. Throws
 * TransferError if the node denies access to a device, else errors of the system.
 */
export const openDisk = async (path: string): Promise<FileHandle> => {
  try {
    return await open(path, constants.O_RDONLY | constants.O_NOFOLLOW);
  } catch (error) {
    const found = await stat(path).catch(() => undefined);
    throw toDeviceFault(error, path, found?.isBlockDevice() === true) ?? error;
  }
};

/** Throws TransferError if there is no disk. */
export const openVolume = async ({ path }: MountedVolumeSource, signal: AbortSignal): Promise<ByteSource> => {
  const what = `the source volume at ${path}`;
  const file = await openDisk(path).catch((error: unknown) => {
    throw isTransferError(error) ? error : interrupted(what, error);
  });
  return sourceOf({ file, size: await sizeOf(file), what, isGuestDisk: true }, signal);
};

/** An empty disk as a source: one sector of zeroes, which the target extends to its own size. */
export const createBlankSource = (): ByteSource => {
  const bytes = Buffer.alloc(smallestDiskBytes);
  return {
    probe: () =>
      Promise.resolve({
        size: bytes.length,
        head: bytes,
        isWhole: true,
        hasRanges: true,
        isPinned: true,
        isGuestDisk: true,
      }),
    read: (offset, length) => Promise.resolve(bytes.subarray(offset, offset + length)),
    readInto: async (_offset, target) => void target.fill(0),
    stream: async function* stream() {
      yield await Promise.resolve(bytes);
    },
    receivedBytes: () => 0,
    close: () => Promise.resolve(),
  };
};
