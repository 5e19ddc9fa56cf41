// Sparse writes to an open file, a few concurrently, with flushes in between so that dirty pages stay bounded.
import type { FileHandle } from 'node:fs/promises';
import { writeFully } from '#shared/transfer/file-bytes.ts';
import { toWriteFault } from '#shared/transfer/fault.ts';
import { createFlushing } from '#shared/transfer/sink/flushing.ts';
import { dataRuns } from '#shared/transfer/sink/zero-runs.ts';

const maxPendingWrites = 4;

export interface SparseWriter {
  write(bytes: Buffer, position: number): Promise<void>;
  writtenBytes(): number;
  /** Waits until the operating system has accepted every write. */
  finish(): Promise<void>;
  /** Waits until every write is on disk. */
  flush(): Promise<void>;
  /** Waits until no write is in progress. Never throws. */
  settle(): Promise<void>;
}

/** `where`: path for messages. */
export const createSparseWriter = (file: FileHandle, where: string): SparseWriter => {
  const pending = new Set<Promise<void>>();
  let written = 0;
  let failure: { readonly error: unknown } | undefined;

  /** The kernel reports a failed write only once, to the next flush: so the first error is kept. */
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
