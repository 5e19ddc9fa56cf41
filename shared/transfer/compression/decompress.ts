// Decompresses a stream: gzip and zstd by Node, xz by its program, each with any number of members. Writes into Node streams and child
// processes have back-pressure.
import { createZstdDecompress, createGunzip } from 'node:zlib';
import { messageOf } from '#shared/runtime/errors.ts';
import { type FramePiece, createFrameSplitter } from '#shared/transfer/compression/zstd-frames.ts';
import { TransferError } from '#shared/transfer/fault.ts';
import type { Transform, Writable } from 'node:stream';
import { spawn } from 'node:child_process';
import { decoderPrograms } from '#shared/transfer/compression/program.ts';
import { toolEnvironment } from '#shared/transfer/tool/run-tool.ts';
import type { Compression } from '#shared/transfer/format/detect.ts';

// Writes a stream of chunks into a Node stream, with back-pressure. Used for decoders, hashes and child processes.

/** The error of `input`, if any. */
interface InputFault {
  readonly error: unknown;
}

const isOpen = (target: Writable): boolean => !target.destroyed && !target.writableEnded && target.errored === null;

/** With plain listeners: ten thousand waits per second with signals would cost more than the writes. */
const untilWritable = (target: Writable): Promise<void> =>
  new Promise((resolve) => {
    const events = ['drain', 'close', 'error'] as const;
    const settle = (): void => {
      for (const event of events) target.off(event, settle);
      resolve();
    };
    for (const event of events) target.on(event, settle);
  });

/**
 * Ends `target` after the last chunk of `input`; returns early if `target` is closed (its own error has the reason). An error of `input`
 * destroys `target` and is returned, never thrown.
 */
export const feed = async (input: AsyncIterable<Buffer>, target: Writable): Promise<InputFault | undefined> => {
  target.on('error', () => {});
  try {
    for await (const chunk of input) {
      if (!isOpen(target)) return undefined;
      if (!target.write(chunk)) await untilWritable(target);
    }
    if (isOpen(target)) target.end();
    return undefined;
  } catch (error) {
    target.destroy(error instanceof Error ? error : new Error(String(error)));
    return { error };
  }
};

// Passes a stream of chunks through a Node transform, with back-pressure and one error.

/** Output of `transform` for `input`. An error of the input is thrown unchanged, one of the transform is mapped by `toFault`. */
export async function* through(
  input: AsyncIterable<Buffer>,
  transform: Transform,
  toFault: (error: unknown) => unknown,
): AsyncGenerator<Buffer, void, undefined> {
  const feeding = feed(input, transform);
  let isFinished = false;
  try {
    for await (const chunk of transform as AsyncIterable<Buffer>) yield chunk;
    isFinished = true;
  } catch (error) {
    const inputFault = await feeding;
    throw inputFault === undefined ? toFault(error) : inputFault.error;
  } finally {
    transform.destroy();
    if (!isFinished) await feeding;
  }
}

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

/** gzip, with any number of members. */

export const gunzipFault = (error: unknown): unknown => {
  if (!(error instanceof Error) || !('code' in error) || !String(error.code).startsWith('Z_')) return error;
  if (error.code === 'Z_BUF_ERROR')
    return new TransferError('ImageTruncated', 'the gzip data ends too early: the file is cut off');
  return new TransferError('ImageCorrupt', `the gzip data is broken: ${messageOf(error)}`);
};

export const gunzip = (input: AsyncIterable<Buffer>): AsyncIterable<Buffer> =>
  through(input, createGunzip({ chunkSize: chunkBytes }), gunzipFault);

/** xz, with any number of streams and blocks, through the xz program. */
const maxComplaintChars = 500;

const missing = (error: unknown): TransferError =>
  new TransferError(
    'InternalFault',
    `cannot run xz, which unpacks .xz images (Debian package ${decoderPrograms.xz.package}): ${messageOf(error)}`,
    { cause: error },
  );

const endFault = (complaint: string, status: number | null, killedBy: string | null): TransferError | undefined => {
  if (status === 0) return undefined;
  if (killedBy !== null) return new TransferError('InternalFault', `xz was killed by ${killedBy}`);
  return decoderPrograms.xz.toFault(complaint === '' ? `xz ended with ${status ?? 'nothing'}` : complaint);
};

const startXz = () => {
  const { program, args } = decoderPrograms.xz;
  const child = spawn(program, args, { stdio: ['pipe', 'pipe', 'pipe'], env: toolEnvironment });
  let complaint = '';
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    complaint = (complaint + text).slice(0, maxComplaintChars);
  });
  const ended = new Promise<TransferError | undefined>((resolve) => {
    child.on('error', (error) => resolve(missing(error)));
    child.on('close', (status, killedBy) => resolve(endFault(complaint, status, killedBy)));
  });
  return { child, ended };
};

export async function* unxz(input: AsyncIterable<Buffer>): AsyncGenerator<Buffer, void, undefined> {
  const { child, ended } = startXz();
  const feeding = feed(input, child.stdin);
  try {
    for await (const chunk of child.stdout as AsyncIterable<Buffer>) yield chunk;
    const fault = await ended;
    const inputFault = await feeding;
    if (inputFault !== undefined) throw inputFault.error;
    if (fault !== undefined) throw fault;
  } finally {
    child.kill('SIGKILL');
    child.stdin.destroy();
    await feeding;
    await ended;
  }
}

// The decompressed bytes of a stream, with one decoder per compression.

/** Throws errors of `input`, and TransferError: ImageTruncated, ImageCorrupt, UnsupportedFormat. */
export const decompress = (compression: Compression, input: AsyncIterable<Buffer>): AsyncIterable<Buffer> => {
  switch (compression) {
    case 'none':
      return input;
    case 'gz':
      return gunzip(input);
    case 'xz':
      return unxz(input);
    case 'zst':
      return unzstd(input);
  }
};
