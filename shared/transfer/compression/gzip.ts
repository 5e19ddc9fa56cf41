// gzip, with any number of members.
import { createGunzip } from 'node:zlib';
import { messageOf } from '#shared/runtime/errors.ts';
import { through } from '#shared/transfer/compression/through.ts';
import { TransferError } from '#shared/transfer/fault.ts';

const chunkBytes = 1024 * 1024;

export const gunzipFault = (error: unknown): unknown => {
  if (!(error instanceof Error) || !('code' in error) || !String(error.code).startsWith('Z_')) return error;
  if (error.code === 'Z_BUF_ERROR')
    return new TransferError('ImageTruncated', 'the gzip data ends too early: the file is cut off');
  return new TransferError('ImageCorrupt', `the gzip data is broken: ${messageOf(error)}`);
};

export const gunzip = (input: AsyncIterable<Buffer>): AsyncIterable<Buffer> =>
  through(input, createGunzip({ chunkSize: chunkBytes }), gunzipFault);
