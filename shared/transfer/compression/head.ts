// The start of the decompressed content, from the start of the compressed file only.
import type { Transform } from 'node:stream';
import { createGunzip, createZstdDecompress } from 'node:zlib';
import type { Compression } from '#shared/transfer/format/detect.ts';
import { isTransferError } from '#shared/transfer/fault.ts';
import { gunzipFault } from '#shared/transfer/compression/decompress.ts';
import { unxz } from '#shared/transfer/compression/decompress.ts';
import { createFrameSplitter } from '#shared/transfer/compression/zstd-frames.ts';
import { unzstdFault } from '#shared/transfer/compression/decompress.ts';

/** Output of `transform` for `bytes`, without ending its input. An error after some output is ignored. */
const firstOutput = (transform: Transform, bytes: Buffer, limit: number): Promise<Buffer> =>
  new Promise((resolve, reject) => {
    const parts: Buffer[] = [];
    let length = 0;
    const finish = () => {
      transform.destroy();
      resolve(Buffer.concat(parts).subarray(0, limit));
    };
    transform.on('data', (chunk: Buffer) => {
      parts.push(chunk);
      length += chunk.length;
      if (length >= limit) finish();
    });
    transform.on('error', (error) => (length > 0 ? finish() : reject(error)));
    transform.write(bytes, () => setImmediate(finish));
  });

const xzHead = async (head: Buffer, limit: number): Promise<Buffer> => {
  const parts: Buffer[] = [];
  let length = 0;
  try {
    for await (const chunk of unxz(one(head))) {
      parts.push(chunk);
      length += chunk.length;
      if (length >= limit) break;
    }
  } catch (error) {
    const isCutHead = isTransferError(error) && error.code === 'ImageTruncated';
    if (length === 0 && !isCutHead) throw error;
  }
  return Buffer.concat(parts).subarray(0, limit);
};

async function* one(bytes: Buffer): AsyncGenerator<Buffer, void, undefined> {
  yield bytes;
}

const firstFrame = (head: Buffer): Buffer => {
  const pieces = createFrameSplitter().push(head);
  const end = pieces.findIndex((piece) => piece.last);
  return Buffer.concat(pieces.slice(0, end === -1 ? pieces.length : end + 1).map((piece) => piece.bytes));
};

/** Up to `limit` bytes; fewer, or none, if `head` contains no more. Throws TransferError if its first bytes are invalid. */
export const decompressHead = async (compression: Compression, head: Buffer, limit: number): Promise<Buffer> => {
  switch (compression) {
    case 'none':
      return head.subarray(0, limit);
    case 'xz':
      return xzHead(head, limit);
    case 'gz':
      return firstOutput(createGunzip(), head, limit).catch((error: unknown) => {
        throw gunzipFault(error);
      });
    case 'zst':
      return firstOutput(createZstdDecompress(), firstFrame(head), limit).catch((error: unknown) => {
        throw unzstdFault(error);
      });
  }
};
