// A guest's disk as a sparse file: filled under another name, renamed once it is whole.
import { type FileHandle, chmod, open, rename, rm } from 'node:fs/promises';
import { dirname } from 'node:path';
import { TransferError, writing } from '#shared/transfer/fault.ts';
import type { TransferTarget } from '#shared/transfer/spec.ts';
import type { Sink } from '#shared/transfer/sink/sink.ts';
import { type SparseWriter, createSparseWriter } from '#shared/transfer/sink/writer.ts';

/** The virtual machine's process runs as another user of the same group. */
const diskMode = 0o660;

const syncDirectory = async (path: string): Promise<void> => {
  const directory = await open(path, 'r');
  await directory.sync().finally(() => directory.close());
};

interface Opened {
  readonly file: FileHandle;
  readonly writer: SparseWriter;
}

/** Fills `<path>.partial`; an older disk at `path` is removed first, since it would take the space of the new one. */
export const createFileSink = (target: TransferTarget): Sink => {
  const path = `${target.path}.partial`;
  let opened: Opened | undefined;
  const close = async (): Promise<void> => {
    await opened?.writer.settle();
    await opened?.file.close().catch(() => {});
    opened = undefined;
  };
  const requireOpened = (): Opened => {
    if (opened === undefined) throw new TransferError('InternalFault', 'the target was used before it was prepared');
    return opened;
  };
  return {
    path,
    limitBytes: target.capacityBytes,
    prepare: (size) =>
      writing(path, async () => {
        await close();
        await rm(target.path, { force: true });
        await rm(path, { force: true });
        const file = await open(path, 'wx+', diskMode);
        opened = { file, writer: createSparseWriter(file, path) };
        await file.truncate(size);
      }),
    write: (bytes, position) => requireOpened().writer.write(bytes, position),
    writtenBytes: async () => {
      const { file, writer } = requireOpened();
      return writer.writtenBytes() || (await file.stat()).blocks * 512;
    },
    commit: (size) =>
      writing(path, async () => {
        const { file, writer } = requireOpened();
        await writer.settle();
        await file.truncate(size);
        await writer.flush();
        await file.sync();
        await chmod(path, diskMode);
        await rename(path, target.path);
        await syncDirectory(dirname(target.path));
        await close();
      }),
    abandon: async () => {
      await close();
      await rm(path, { force: true }).catch(() => {});
    },
  };
};
