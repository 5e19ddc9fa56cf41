// The open file of a sink, if any, and its writer.
import { type FileHandle, open } from 'node:fs/promises';
import { TransferError } from '#shared/transfer/fault.ts';
import { type SparseWriter, createSparseWriter } from '#shared/transfer/sink/writer.ts';
import { runTool } from '#shared/transfer/tool/run-tool.ts';

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
