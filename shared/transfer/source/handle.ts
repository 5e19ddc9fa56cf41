// Sources of this machine: an open file or device, which is read at any place and never written; a file of a mounted folder, another volume, and an
// empty disk.
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

/** A file of a mounted folder as a source. What it is, is told by its content, as that of a file on the web. */
const openHandle = async (dir: string, key: string): Promise<FileHandle> => {
  if (key.split('/').includes('..')) throw new TransferError('InvalidSpec', `"${key}" leads out of its folder`);
  try {
    return await open(join(dir, key), constants.O_RDONLY | constants.O_NOFOLLOW);
  } catch (error) {
    const isMissing = error instanceof Error && 'code' in error && error.code === 'ENOENT';
    if (isMissing) throw new TransferError('SourceNotFound', `there is no file ${key} in the mounted folder`);
    throw new TransferError('SourceUnavailable', `cannot read ${key} in the mounted folder: ${messageOf(error)}`);
  }
};

/** Throws TransferError. */
export const openFile = async (dir: string, key: string, signal: AbortSignal): Promise<ByteSource> => {
  const file = await openHandle(dir, key);
  const { size } = await file.stat();
  return sourceOf({ file, size, what: key }, signal);
};

// Another volume as a source: a guest's raw disk, on a device or as `disk.img`. What a guest wrote is never looked into: a disk that
// begins like a qcow2 file is copied as it is.

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

/**
 * Opened read-only, and never through a link: whoever could write to the volume could have made its disk a link to a file of ours. Throws TransferError where
 * the node keeps a device from us, else what the system says.
 */
export const openDisk = async (path: string): Promise<FileHandle> => {
  try {
    return await open(path, constants.O_RDONLY | constants.O_NOFOLLOW);
  } catch (error) {
    const found = await stat(path).catch(() => undefined);
    throw toDeviceFault(error, path, found?.isBlockDevice() === true) ?? error;
  }
};

/** Throws TransferError when there is no disk. */
export const openVolume = async ({ path }: MountedVolumeSource, signal: AbortSignal): Promise<ByteSource> => {
  const what = `the source volume at ${path}`;
  const file = await openDisk(path).catch((error: unknown) => {
    throw isTransferError(error) ? error : interrupted(what, error);
  });
  return sourceOf({ file, size: await sizeOf(file), what, isGuestDisk: true }, signal);
};

/** An empty disk as a source: one sector of zeroes, which the target grows to its own size. */
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
