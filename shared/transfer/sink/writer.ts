// Sparse writes to an open file, a few at a time, flushed on the way so that dirty pages stay bounded.
import type { FileHandle } from 'node:fs/promises';
import { writeFully } from '#shared/transfer/file-bytes.ts';
import { toWriteFault } from '#shared/transfer/fault.ts';
import { createFlushing } from '#shared/transfer/sink/flushing.ts';
import { dataRuns } from '#shared/transfer/sink/zero-runs.ts';

const maxPendingWrites = 4;

export interface SparseWriter {
  write(bytes: Buffer, position: number): Promise<void>;
  writtenBytes(): number;
  /** Waits until every write was taken by the operating system. */
  finish(): Promise<void>;
  /** Waits until every write is on disk. */
  flush(): Promise<void>;
  /** Waits until nothing is being written any more. Never throws. */
  settle(): Promise<void>;
}

/** `where` is the path that faults name. */
export const createSparseWriter = (file: FileHandle, where: string): SparseWriter => {
  const pending = new Set<Promise<void>>();
  let written = 0;
  let failure: { readonly error: unknown } | undefined;

  /** The kernel tells of a write that the disk refused once, to the flush that meets it: so the first fault is kept for good. */
  const keepFault = (error: unknown): void => {
    failure ??= { error: toWriteFault(error, where) };
  };
  const track = (work: Promise<void>): Promise<void> => {
    const settled = work.catch(keepFault).finally(() => pending.delete(settled));
    pending.add(settled);
    return settled;
  };
  const throwFailure = (): void => {
    if (failure !== undefined) throw failure.error;
  };
  const flushing = createFlushing(() => track(file.datasync()));

  const finish = async (): Promise<void> => {
    await Promise.all(pending);
    throwFailure();
  };

  return {
    write: async (bytes, position) => {
      for (const { start, end } of dataRuns(bytes)) {
        while (pending.size >= maxPendingWrites) await Promise.race(pending);
        throwFailure();
        written += end - start;
        void track(writeFully(file, bytes.subarray(start, end), position + start));
      }
      flushing.reach(written);
    },
    writtenBytes: () => written,
    finish,
    flush: async () => {
      await finish();
      await file.datasync().catch(keepFault);
      throwFailure();
    },
    settle: async () => {
      await Promise.all(pending);
    },
  };
};
