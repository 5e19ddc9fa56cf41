// A guest's disk as a sparse file: filled under another name, renamed once it is whole.
import { chmod, open, rename, rm } from 'node:fs/promises';
import { dirname } from 'node:path';
import { writing } from '#shared/transfer/fault.ts';
import type { TransferTarget } from '#shared/transfer/spec.ts';
import type { Sink } from '#shared/transfer/sink/sink.ts';
import { createSlot } from '#shared/transfer/sink/slot.ts';

/** The virtual machine's process runs as another user of the same group. */
const diskMode = 0o660;

const syncDirectory = async (path: string): Promise<void> => {
  const directory = await open(path, 'r');
  try {
    await directory.sync();
  } finally {
    await directory.close();
  }
};

/** Fills `<path>.partial`; an older disk at `path` is removed first, since it would take the space of the new one. */
export const createFileSink = (target: TransferTarget): Sink => {
  const path = `${target.path}.partial`;
  const slot = createSlot(path);
  return {
    path,
    limitBytes: target.capacityBytes,
    prepare: (size) =>
      writing(path, async () => {
        await slot.close();
        await rm(target.path, { force: true });
        await rm(path, { force: true });
        const file = await slot.open('wx+', diskMode);
        await file.truncate(size);
      }),
    file: () => slot.require().file,
    write: (bytes, position) => slot.require().writer.write(bytes, position),
    writtenBytes: () => slot.writtenBytes(),
    flush: () => slot.require().writer.flush(),
    commit: (size) =>
      writing(path, async () => {
        const { file, writer } = slot.require();
        await writer.finish();
        await file.truncate(Math.max(size, target.diskBytes ?? 0));
        await file.sync();
        await chmod(path, diskMode);
        await rename(path, target.path);
        await syncDirectory(dirname(target.path));
        await slot.close();
      }),
    abandon: async () => {
      await slot.close();
      await rm(path, { force: true }).catch(() => {});
    },
  };
};
