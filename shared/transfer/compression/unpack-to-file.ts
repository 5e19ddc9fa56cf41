// Lets a decoder program write the target itself: ten gigabytes of mostly zeroes take more time in JavaScript than in the program.
import { type ChildProcessByStdio, spawn, spawnSync } from 'node:child_process';
import { readFile } from 'node:fs/promises';
import type { Readable, Writable } from 'node:stream';
import { feed } from '#shared/transfer/compression/decompress.ts';
import { type DecoderProgram, decoderPrograms } from '#shared/transfer/compression/program.ts';
import { TransferError, targetFull } from '#shared/transfer/fault.ts';
import { toolEnvironment } from '#shared/transfer/tool/run-tool.ts';

export type ProgramCompression = keyof typeof decoderPrograms;

/** Whether there is a program for this compression that can write files. */
export const canUnpackToFile = (compression: string): compression is ProgramCompression =>
  Object.hasOwn(decoderPrograms, compression) && isInstalled(decoderPrograms[compression as ProgramCompression]);

const isInstalled = ({ program }: DecoderProgram): boolean =>
  spawnSync(program, ['--version'], { stdio: 'ignore', env: toolEnvironment }).status === 0;

export interface FileUnpacking {
  readonly compression: ProgramCompression;
  readonly input: AsyncIterable<Buffer>;
  /** An empty regular file, open for writing at its start. The decoder leaves holes for zeroes. */
  readonly descriptor: number;
  /** Path of the file, for messages. */
  readonly path: string;
  /** The decoder is stopped soon after it exceeds this size. */
  readonly limitBytes: number;
  /** Creates the fault for an exceeded limit. */
  readonly tooLarge: () => TransferError;
  readonly signal: AbortSignal;
}

type Decoder = ChildProcessByStdio<Writable, null, Readable>;

/** Decoders seek over zeroes, which no limit of the kernel prevents; the position of the shared descriptor shows their progress. */
const watchMs = 100;
const positionOf = async (descriptor: number): Promise<number> =>
  Number(/^pos:\s*(\d+)/m.exec(await readFile(`/proc/self/fdinfo/${descriptor}`, 'utf8'))?.[1] ?? 0);

const maxComplaintChars = 1000;

const startDecoder = ({ compression, descriptor, limitBytes }: FileUnpacking): Decoder => {
  const { program, args } = decoderPrograms[compression];
  // In blocks of 512 bytes; one more than the limit, so that exceeding it is observable.
  const script = `ulimit -c 0 && ulimit -f ${Math.ceil(limitBytes / 512) + 1} && exec "$@"`;
  return spawn('/bin/sh', ['-c', script, 'sh', program, ...args], {
    stdio: ['pipe', descriptor, 'pipe'],
    env: toolEnvironment,
  }) as Decoder;
};

/** Resolves with the fault of the decoder. */
const endOf = (child: Decoder, { compression, path, tooLarge }: FileUnpacking): Promise<TransferError | undefined> => {
  let complaint = '';
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    complaint = (complaint + text).slice(-maxComplaintChars);
  });
  const toFault = (status: number | null, killedBy: string | null): TransferError | undefined => {
    if (status === 0) return undefined;
    if (killedBy === 'SIGXFSZ' || /file too large/i.test(complaint)) return tooLarge();
    if (/no space left|disk quota/i.test(complaint)) return targetFull(path);
    if (/write error|input\/output error/i.test(complaint)) {
      return new TransferError('TargetFailed', `cannot write to ${path}: ${complaint.trim()}`);
    }
    if (killedBy !== null)
      return new TransferError('InternalFault', `the ${compression} decoder was killed by ${killedBy}`);
    return decoderPrograms[compression].toFault(complaint);
  };
  return new Promise((resolve) => {
    child.on('error', (error) => resolve(new TransferError('InternalFault', `cannot run a shell: ${error.message}`)));
    child.on('close', (status, killedBy) => resolve(toFault(status, killedBy)));
  });
};

/** Kills the decoder when it exceeds the limit; `isBeyond` returns whether it did. */
const watchPosition = (child: Decoder, { descriptor, limitBytes }: FileUnpacking) => {
  let isBeyond = false;
  const look = async (): Promise<void> => {
    if ((await positionOf(descriptor).catch(() => 0)) <= limitBytes) return;
    isBeyond = true;
    child.kill('SIGKILL');
  };
  const timer = setInterval(() => void look(), watchMs);
  return { isBeyond: () => isBeyond, stop: () => clearInterval(timer) };
};

/** The decompressed size is the size of the file. Throws errors of `input`, TransferError, and the reason of the signal. */
export const unpackToFile = async (unpacking: FileUnpacking): Promise<void> => {
  const child = startDecoder(unpacking);
  const kill = () => child.kill('SIGKILL');
  unpacking.signal.addEventListener('abort', kill, { once: true });
  const position = watchPosition(child, unpacking);
  const ended = endOf(child, unpacking);
  const feeding = feed(unpacking.input, child.stdin);
  const fault = await ended;
  const inputFault = await feeding;
  position.stop();
  unpacking.signal.removeEventListener('abort', kill);
  unpacking.signal.throwIfAborted();
  if (inputFault !== undefined) throw inputFault.error;
  if (position.isBeyond()) throw unpacking.tooLarge();
  if (fault !== undefined) throw fault;
};
