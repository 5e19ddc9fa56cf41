// The file a sink has open, if it has one, and the writer on it.
import { type FileHandle, open } from 'node:fs/promises';
import { TransferError } from '#shared/transfer/fault.ts';
import { type SparseWriter, createSparseWriter } from '#shared/transfer/sink/writer.ts';
import { runTool } from '#shared/transfer/tool/run-tool.ts';

interface Opened {
  readonly file: FileHandle;
  readonly writer: SparseWriter;
}

export interface Slot {
  /** Opens the path anew; what was open before is closed. */
  open(flags: string, mode?: number): Promise<FileHandle>;
  isOpen(): boolean;
  /** Throws when nothing is open. */
  require(): Opened;
  /** What the writer wrote, or what another program's writes take up. */
  writtenBytes(): Promise<number>;
  /** Waits for writes under way, then closes. Never throws. */
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

// Gives a file all the room that its size promises, holes and all, so that nothing a guest writes later fails for want of it.

/** What is there stays as it is. Throws TransferError TargetFull where there is less room than that, TargetFailed where the file system refuses. */
export const allocate = async (path: string, bytes: number, signal: AbortSignal): Promise<void> => {
  const args = ['--posix', '--length', String(bytes), path];
  const { status, complaint, isMissing } = await runTool({ program: 'fallocate', args, signal });
  if (status === 0) return;
  const said = complaint.trim().slice(-300);
  if (isMissing) throw new TransferError('InternalFault', `cannot run fallocate (Debian package util-linux): ${said}`);
  const isFull = /no space left|quota exceeded|file too large/i.test(said);
  throw isFull
    ? new TransferError(
        'TargetFull',
        `no room for all ${bytes} bytes of ${path}, which preallocation asks for: ${said}`,
      )
    : new TransferError('TargetFailed', `cannot preallocate ${path}: ${said}`);
};
