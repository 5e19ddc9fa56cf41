// Sparse writes to an open file, a few at a time, flushed on the way so that dirty pages stay bounded.
import type { FileHandle } from 'node:fs/promises';
import { writeFully } from '#shared/transfer/file-bytes.ts';
import { toWriteFault } from '#shared/transfer/fault.ts';
import { dataRuns } from '#shared/transfer/sink/zero-runs.ts';

const maxPendingWrites = 4;
const flushEveryBytes = 128 * 1024 * 1024;

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
  let flushedAt = 0;
  let isFlushing = false;
  let failure: { readonly error: unknown } | undefined;

  const track = (work: Promise<void>): void => {
    const settled = work
      .catch((error: unknown) => {
        failure ??= { error: toWriteFault(error, where) };
      })
      .finally(() => pending.delete(settled));
    pending.add(settled);
  };
  const throwFailure = (): void => {
    if (failure !== undefined) throw failure.error;
  };
  const flushOnTheWay = (): void => {
    if (isFlushing || written - flushedAt < flushEveryBytes) return;
    isFlushing = true;
    flushedAt = written;
    track(file.datasync().finally(() => (isFlushing = false)));
  };

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
        track(writeFully(file, bytes.subarray(start, end), position + start));
      }
      flushOnTheWay();
    },
    writtenBytes: () => written,
    finish,
    flush: async () => {
      await finish();
      await file.datasync().catch((error: unknown) => {
        throw toWriteFault(error, where);
      });
    },
    settle: async () => {
      await Promise.all(pending);
    },
  };
};
