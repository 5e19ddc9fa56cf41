// Sparse writes to an open file, a few concurrently, with flushes in between so that dirty pages stay bounded.
import { type FileHandle, open } from 'node:fs/promises';
import { toWriteFault, TransferError } from '#shared/transfer/fault.ts';
import { writeFully } from '#shared/transfer/file-bytes.ts';
import { createFlushing } from './flushing.ts';
import { runTool } from '#shared/transfer/tool/run-tool.ts';

// Finds the parts of a buffer that are not zero. Pure.

/** Granularity of holes. Smaller ones cost more writes than they save. */
const blockBytes = 32 * 1024;
const zeroes = Buffer.alloc(blockBytes);

interface Run {
  readonly start: number;
  readonly end: number;
}

/** Checking both ends first is enough for nearly all blocks with data. */
const isZero = (bytes: Buffer, start: number, end: number): boolean =>
  bytes[start] === 0 && bytes[end - 1] === 0 && zeroes.compare(bytes, start, end, 0, end - start) === 0;

/** Runs of blocks that are not zero, adjacent ones joined, in order. */
export const dataRuns = (bytes: Buffer): readonly Run[] => {
  const runs: Run[] = [];
  let start = -1;
  for (let at = 0; at < bytes.length; at += blockBytes) {
    const end = Math.min(at + blockBytes, bytes.length);
    if (!isZero(bytes, at, end)) {
      if (start === -1) start = at;
    } else if (start !== -1) {
      runs.push({ start, end: at });
      start = -1;
    }
  }
  if (start !== -1) runs.push({ start, end: bytes.length });
  return runs;
};

const maxPendingWrites = 4;

interface SparseWriter {
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

// The open file of a sink, if any, and its writer.

interface Opened {
  readonly file: FileHandle;
  readonly writer: SparseWriter;
}

export interface Slot {
  /** Opens the path again; a previously open file is closed. */
  open(flags: string, mode?: number): Promise<FileHandle>;
  isOpen(): boolean;
  /** Throws if nothing is open. */
  require(): Opened;
  /** Bytes of the writer, or the allocation by another program. */
  writtenBytes(): Promise<number>;
  /** Waits for writes in progress, then closes. Never throws. */
  close(): Promise<void>;
}

export const createSlot = (path: string): Slot => {
  let opened: Opened | undefined;
  const require = (): Opened => {
    if (opened === undefined) throw new TransferError('InternalFault', 'the target was used before it was prepared');
    return opened;
  };
  const close = async (): Promise<void> => {
    const closing = opened;
    opened = undefined;
    await closing?.writer.settle();
    await closing?.file.close().catch(() => {});
  };
  return {
    open: async (flags, mode) => {
      await close();
      const file = await open(path, flags, mode);
      opened = { file, writer: createSparseWriter(file, path) };
      return file;
    },
    isOpen: () => opened !== undefined,
    require,
    writtenBytes: async () => {
      const { file, writer } = require();
      return writer.writtenBytes() || (await file.stat()).blocks * 512;
    },
    close,
  };
};

// Preallocates a file with all its holes, so that later writes of a guest never fail for lack of space.

/** Existing data is unchanged. Throws TransferError: TargetFull if there is not enough space, TargetFailed if the file system rejects it. */
export const allocate = async (path: string, bytes: number, signal: AbortSignal): Promise<void> => {
  const args = ['--posix', '--length', String(bytes), path];
  const { status, complaint, isMissing } = await runTool({ program: 'fallocate', args, signal });
  if (status === 0) return;
  const detail = complaint.trim().slice(-300);
  if (isMissing)
    throw new TransferError('InternalFault', `cannot run fallocate (Debian package util-linux): ${detail}`);
  const isFull = /no space left|quota exceeded|file too large/i.test(detail);
  throw isFull
    ? new TransferError('TargetFull', `not enough space to preallocate ${bytes} bytes for ${path}: ${detail}`)
    : new TransferError('TargetFailed', `cannot preallocate ${path}: ${detail}`);
};
