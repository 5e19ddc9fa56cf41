// A guest's disk as a sparse file: written under a temporary name, renamed once it is complete.
import { type FileHandle, chmod, rename, rm, stat } from 'node:fs/promises';
import { dirname } from 'node:path';
import { writing } from '#shared/transfer/fault.ts';
import { createFileJournal, syncDirectory } from '#shared/transfer/resume/journal.ts';
import { allocate } from '#shared/transfer/sink/slot.ts';
import type { TransferTarget } from '#shared/transfer/spec.ts';
import type { Sink } from '#shared/transfer/sink/sink.ts';
import { createSlot } from '#shared/transfer/sink/slot.ts';

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
