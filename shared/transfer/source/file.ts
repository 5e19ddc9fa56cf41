// A file of a mounted folder as a source. What it is, is told by its content, as that of a file on the web.
import { constants } from 'node:fs';
import { type FileHandle, open } from 'node:fs/promises';
import { join } from 'node:path';
import { messageOf } from '#shared/runtime/errors.ts';
import { TransferError } from '#shared/transfer/fault.ts';
import { sourceOf } from '#shared/transfer/source/handle.ts';
import type { Source } from '#shared/transfer/source/source.ts';

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
  return sourceOf({ file, size, what: key }, signal);
};
