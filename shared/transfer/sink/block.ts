// A guest's disk on a block device (or on a file of fixed size, for tests): zeroed first, fully allocated if requested, then written in place.
import { type FileHandle, readFile, stat } from 'node:fs/promises';
import { TransferError, toDeviceFault, writing } from '#shared/transfer/fault.ts';
import { createTailJournal, tailBytes } from '#shared/transfer/resume/journal.ts';
import type { TransferTarget } from '#shared/transfer/spec.ts';
import type { Sink } from '#shared/transfer/sink/sink.ts';
import { allocate, createSlot, type Slot } from './writer.ts';
import { runTool } from '#shared/transfer/tool/run-tool.ts';

/** Zeroes a device, with nothing allocated or everything, as requested. */
const chunkBytes = 1024 * 1024;

/**
 * The cheapest methods first. Holes release the allocation of a thin device; zeroed ranges (BLKDEV_ZERO_NOUNMAP in the kernel) allocate the
 * whole range, and are written out if the device does not support them.
 */
const waysTo = (isAllocated: boolean, length: number): readonly (readonly [string, ...string[]])[] => {
  const range = ['--offset', '0', '--length', String(length)];
  return [
    ['fallocate', isAllocated ? '--zero-range' : '--punch-hole', ...range],
    ['blkdiscard', '--zeroout', ...range],
  ];
};

const writeZeroes = async (file: FileHandle, length: number, signal?: AbortSignal): Promise<void> => {
  const zeroes = Buffer.alloc(Math.min(chunkBytes, length));
  for (let at = 0; at < length; at += chunkBytes) {
    signal?.throwIfAborted();
    await file.write(zeroes, 0, Math.min(chunkBytes, length - at), at);
  }
};

interface Zeroing {
  readonly path: string;
  readonly file: FileHandle;
  /** Bytes. */
  readonly length: number;
  readonly isAllocated: boolean;
}

/** Writing zeroes always works; a device without space for it fails with ENOSPC. */
const zeroDevice = async ({ path, file, length, isAllocated }: Zeroing, signal: AbortSignal): Promise<void> => {
  for (const [program, ...args] of waysTo(isAllocated, length)) {
    const ended = await runTool({ program, args: [...args, path], signal });
    if (ended.status === 0) return;
  }
  await writeZeroes(file, length, signal);
};

/** Everything that identifies a disk is in its first megabyte. */
const startBytes = 1024 * 1024;

interface Device {
  readonly isFile: boolean;
  readonly bytes: number;
}

/** sysfs counts sectors of 512 bytes, whatever the sector size of the device is. */
const deviceBytes = async (number: number): Promise<number> => {
  const major = Math.floor(number / 256) % 4096;
  const minor = (number % 256) + Math.floor(number / 2 ** 20) * 256;
  return Number(await readFile(`/sys/dev/block/${major}:${minor}/size`, 'utf8')) * 512;
};

const inspectDevice = (path: string): Promise<Device> =>
  writing(path, async () => {
    const found = await stat(path);
    if (found.isFile()) return { isFile: true, bytes: found.size };
    if (found.isBlockDevice()) return { isFile: false, bytes: await deviceBytes(found.rdev) };
    throw new TransferError('TargetFailed', `${path} is neither a block device nor a file`);
  });

const zeroFile = async (file: FileHandle, bytes: number): Promise<void> => {
  await file.truncate(0);
  await file.truncate(bytes);
};

/** Without its first megabyte (partition table, boot sector, superblock) a device is not recognized as a disk. Fast enough for a cancellation. */
const eraseStart = async (file: FileHandle, device: Device): Promise<void> => {
  if (device.isFile) await zeroFile(file, device.bytes);
  else await writeZeroes(file, Math.min(startBytes, device.bytes));
  await file.datasync();
};

/** A regular file may have been created empty; it then grows to the requested capacity. */
const usable = (device: Device, capacityBytes: number): Device =>
  device.isFile && device.bytes === 0 ? { isFile: true, bytes: capacityBytes } : device;

/** The journal after the guest's disk, if there is enough space. */
const createTail = (slot: Slot, path: string, device: Device) => {
  const journal = createTailJournal(() => slot.require().file, path, device.bytes);
  let hasRoom = false;
  return {
    open: async (size: number): Promise<FileHandle> => {
      hasRoom = size > 0 && size <= device.bytes - tailBytes;
      try {
        return await slot.open('r+');
      } catch (error) {
        throw toDeviceFault(error, path, !device.isFile) ?? error;
      }
    },
    journal: () => (hasRoom ? journal : undefined),
    forget: () => (hasRoom ? journal.remove() : Promise.resolve()),
    read: async () => (hasRoom && slot.isOpen() ? journal.read() : undefined),
  };
};

/** Throws TransferError if there is no such device. */
export const createBlockSink = async (target: TransferTarget, signal: AbortSignal): Promise<Sink> => {
  const { path, preallocated: isAllocated = false } = target;
  const device = usable(await inspectDevice(path), target.capacityBytes);
  const slot = createSlot(path);
  const tail = createTail(slot, path, device);
  const abandon = async (): Promise<void> => {
    if (!slot.isOpen()) return;
    const { file, writer } = slot.require();
    await writer.settle();
    await tail.forget().catch(() => {});
    await eraseStart(file, device).catch(() => {});
    await slot.close();
  };
  return {
    path,
    limitBytes: Math.min(target.capacityBytes, device.bytes),
    prepare: (size) =>
      writing(path, async () => {
        const file = await tail.open(size);
        // The journal goes first, before the data it describes.
        await tail.forget();
        if (!device.isFile) return zeroDevice({ path, file, length: device.bytes, isAllocated }, signal);
        await zeroFile(file, device.bytes);
        if (isAllocated) await allocate(path, device.bytes, signal);
      }),
    reopen: (size) =>
      writing(path, async () => {
        await tail.open(size);
        const text = await tail.read();
        if (text === undefined) await slot.close();
        return text;
      }),
    journal: () => tail.journal(),
    file: () => undefined,
    write: (chunk, position) => slot.require().writer.write(chunk, position),
    writtenBytes: () => slot.writtenBytes(),
    flush: () => slot.require().writer.flush(),
    commit: () =>
      writing(path, async () => {
        const { file, writer } = slot.require();
        await writer.flush();
        await tail.forget();
        await file.sync();
        await slot.close();
      }),
    suspend: async () => ((await tail.read()) === undefined ? abandon() : slot.close()),
    abandon,
  };
};
