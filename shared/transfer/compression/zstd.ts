// zstd, with any number of frames.
import { createZstdDecompress } from 'node:zlib';
import { messageOf } from '#shared/runtime/errors.ts';
import { through } from '#shared/transfer/compression/through.ts';
import { type FramePiece, createFrameSplitter } from '#shared/transfer/compression/zstd-frames.ts';
import { TransferError } from '#shared/transfer/fault.ts';

const chunkBytes = 1024 * 1024;

export const unzstdFault = (error: unknown): unknown => {
  if (!(error instanceof Error) || !('code' in error) || !/^(Z_|ZSTD_)/.test(String(error.code))) return error;
  if (/window|memory/i.test(`${String(error.code)} ${error.message}`)) {
    return new TransferError(
      'UnsupportedFormat',
      'the zstd data needs a window above 128 MiB; compress it without --long or --ultra',
    );
  }
  return new TransferError('ImageCorrupt', `the zstd data is broken: ${messageOf(error)}`);
};

async function* pieces(input: AsyncIterable<Buffer>): AsyncGenerator<FramePiece, void, undefined> {
  const splitter = createFrameSplitter();
  for await (const chunk of input) yield* splitter.push(chunk);
  if (!splitter.isComplete())
    throw new TransferError('ImageTruncated', 'the zstd data ends too early: the file is cut off');
}

async function* oneFrame(first: Buffer, rest: AsyncIterator<FramePiece>): AsyncGenerator<Buffer, void, undefined> {
  yield first;
  for (;;) {
    const next = await rest.next();
    if (next.done === true) return;
    yield next.value.bytes;
    if (next.value.last) return;
  }
}

export async function* unzstd(input: AsyncIterable<Buffer>): AsyncGenerator<Buffer, void, undefined> {
  const source = pieces(input);
  try {
    for (;;) {
      const next = await source.next();
      if (next.done === true) return;
      yield* through(oneFrame(next.value.bytes, source), createZstdDecompress({ chunkSize: chunkBytes }), unzstdFault);
    }
  } finally {
    await source.return();
  }
}
