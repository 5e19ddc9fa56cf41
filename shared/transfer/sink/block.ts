// A guest's disk as a block device (or a file of fixed size that stands for one): zeroed first, then filled in place.
import { type FileHandle, open, readFile, stat } from 'node:fs/promises';
import { TransferError, writing } from '#shared/transfer/fault.ts';
import type { TransferTarget } from '#shared/transfer/spec.ts';
import type { Sink } from '#shared/transfer/sink/sink.ts';
import { type SparseWriter, createSparseWriter } from '#shared/transfer/sink/writer.ts';
import { runTool } from '#shared/transfer/tool/run-tool.ts';

const zeroChunkBytes = 1024 * 1024;

interface Device {
  readonly isFile: boolean;
  readonly bytes: number;
}

/** sysfs counts in sectors of 512 bytes, whatever the device's own are. */
const deviceBytes = async (number: number): Promise<number> => {
  const major = Math.floor(number / 256) % 4096;
  const minor = (number % 256) + Math.floor(number / 2 ** 20) * 256;
  return Number(await readFile(`/sys/dev/block/${major}:${minor}/size`, 'utf8')) * 512;
};

const lookAt = (path: string): Promise<Device> =>
  writing(path, async () => {
    const found = await stat(path);
    if (found.isFile()) return { isFile: true, bytes: found.size };
    if (found.isBlockDevice()) return { isFile: false, bytes: await deviceBytes(found.rdev) };
    throw new TransferError('TargetFailed', `${path} is neither a block device nor a file`);
  });

const writeZeroes = async (file: FileHandle, length: number, signal: AbortSignal): Promise<void> => {
  const zeroes = Buffer.alloc(zeroChunkBytes);
  for (let at = 0; at < length; at += zeroChunkBytes) {
    signal.throwIfAborted();
    await file.write(zeroes, 0, Math.min(zeroChunkBytes, length - at), at);
  }
};

/** Ways to make a device read as zeroes, the cheapest first; the last always works. */
const zeroDevice = async (path: string, file: FileHandle, length: number, signal: AbortSignal): Promise<void> => {
  const range = ['--offset', '0', '--length', String(length)];
  const ways = [
    ['fallocate', '--punch-hole', ...range, path],
    ['blkdiscard', '--zeroout', ...range, path],
  ] as const;
  for (const [program, ...args] of ways) {
    const ended = await runTool({ program, args, signal });
    if (ended.status === 0) return;
  }
  await writeZeroes(file, length, signal);
};

const zeroFile = async (file: FileHandle, bytes: number): Promise<void> => {
  await file.truncate(0);
  await file.truncate(bytes);
};

export const createBlockSink = async (target: TransferTarget, signal: AbortSignal): Promise<Sink> => {
  const { path } = target;
  const device = await lookAt(path);
  /** A stand-in file may have been made empty; it then grows to what was promised. */
  const bytes = device.isFile ? Math.max(device.bytes, target.capacityBytes) : device.bytes;
  let opened: { readonly file: FileHandle; readonly writer: SparseWriter } | undefined;

  const zero = async (file: FileHandle, untilAborted: AbortSignal): Promise<void> => {
    if (device.isFile) await zeroFile(file, bytes);
    else await zeroDevice(path, file, bytes, untilAborted);
  };
  const requireOpened = () => {
    if (opened === undefined) throw new TransferError('InternalFault', 'the target was used before it was prepared');
    return opened;
  };
  const close = async (): Promise<void> => {
    await opened?.writer.settle();
    await opened?.file.close().catch(() => {});
    opened = undefined;
  };
  return {
    path,
    limitBytes: Math.min(target.capacityBytes, bytes),
    prepare: () =>
      writing(path, async () => {
        await close();
        const file = await open(path, 'r+');
        opened = { file, writer: createSparseWriter(file, path) };
        await zero(file, signal);
      }),
    write: (chunk, position) => requireOpened().writer.write(chunk, position),
    writtenBytes: async () => {
      const { file, writer } = requireOpened();
      return writer.writtenBytes() || (await file.stat()).blocks * 512;
    },
    commit: () =>
      writing(path, async () => {
        const { file, writer } = requireOpened();
        await writer.flush();
        await file.sync();
        await close();
      }),
    abandon: async () => {
      if (opened === undefined) return;
      const { file, writer } = opened;
      await writer.settle();
      // Without its first megabyte (partition table, boot sector, superblock) nothing takes this for a disk. Cheap, so it fits a cancellation.
      await (device.isFile ? zeroFile(file, bytes) : file.write(Buffer.alloc(zeroChunkBytes), 0, Math.min(zeroChunkBytes, bytes), 0)).then(
        () => file.datasync(),
        () => {},
      );
      await close();
    },
  };
};
