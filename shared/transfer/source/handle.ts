// An open file or device as a source: read at any place, never written. Called by file.ts and volume.ts.
import type { FileHandle } from 'node:fs/promises';
import { messageOf } from '#shared/runtime/errors.ts';
import { TransferError } from '#shared/transfer/fault.ts';
import { readFully } from '#shared/transfer/file-bytes.ts';
import { type Source, headBytes } from '#shared/transfer/source/source.ts';

const pieceBytes = 1024 * 1024;

export interface OpenFile {
  readonly file: FileHandle;
  /** Bytes. */
  readonly size: number;
  /** For messages. */
  readonly what: string;
  readonly isGuestDisk?: boolean;
}

export const interrupted = (what: string, error: unknown): TransferError =>
  new TransferError('SourceInterrupted', `cannot read ${what}: ${messageOf(error)}`, { cause: error });

const fill = async ({ file, what }: OpenFile, offset: number, target: Uint8Array): Promise<void> => {
  const filled = await readFully(file, target, offset).catch((error: unknown) => {
    throw interrupted(what, error);
  });
  if (filled < target.length) throw new TransferError('SourceChanged', `${what} became shorter`);
};

export const sourceOf = (opened: OpenFile, signal: AbortSignal): Source => {
  const { file, size, isGuestDisk } = opened;
  let received = 0;
  const readInto = async (offset: number, target: Uint8Array): Promise<void> => {
    signal.throwIfAborted();
    await fill(opened, offset, target);
    received += target.length;
  };
  const read = async (offset: number, length: number): Promise<Buffer> => {
    const bytes = Buffer.allocUnsafe(length);
    await readInto(offset, bytes);
    return bytes;
  };
  return {
    probe: async () => ({
      size,
      head: await read(0, Math.min(headBytes, size)),
      isWhole: size <= headBytes,
      hasRanges: true,
      isPinned: true,
      isGuestDisk,
    }),
    read,
    readInto,
    stream: async function* stream() {
      for (let at = 0; at < size; at += pieceBytes) yield await read(at, Math.min(pieceBytes, size - at));
    },
    receivedBytes: () => received,
    close: () => file.close(),
  };
};
