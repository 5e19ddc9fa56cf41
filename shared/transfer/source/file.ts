// A file of a mounted folder as a source. What it is, is told by its content, as that of a file on the web.
import { constants } from 'node:fs';
import { type FileHandle, open } from 'node:fs/promises';
import { join } from 'node:path';
import { messageOf } from '#shared/runtime/errors.ts';
import { TransferError } from '#shared/transfer/fault.ts';
import { type Source, headBytes } from '#shared/transfer/source/source.ts';

const pieceBytes = 1024 * 1024;

const openHandle = async (dir: string, key: string): Promise<FileHandle> => {
  if (key.split('/').includes('..')) throw new TransferError('InvalidSpec', `"${key}" leads out of its folder`);
  try {
    return await open(join(dir, key), constants.O_RDONLY | constants.O_NOFOLLOW);
  } catch (error) {
    const isMissing = error instanceof Error && 'code' in error && error.code === 'ENOENT';
    if (isMissing) throw new TransferError('SourceNotFound', `there is no file ${key} in the mounted folder`);
    throw new TransferError('SourceUnavailable', `cannot read ${key} in the mounted folder: ${messageOf(error)}`);
  }
};

/** Throws TransferError. */
export const openFile = async (dir: string, key: string, signal: AbortSignal): Promise<Source> => {
  const file = await openHandle(dir, key);
  const { size } = await file.stat();
  let received = 0;
  const readInto = async (offset: number, target: Uint8Array): Promise<void> => {
    signal.throwIfAborted();
    const { bytesRead } = await file.read(target, 0, target.length, offset).catch((error: unknown) => {
      throw new TransferError('SourceInterrupted', `cannot read ${key}: ${messageOf(error)}`, { cause: error });
    });
    received += bytesRead;
    if (bytesRead < target.length) throw new TransferError('SourceChanged', `${key} became shorter`);
  };
  const read = async (offset: number, length: number): Promise<Buffer> => {
    const bytes = Buffer.alloc(length);
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
