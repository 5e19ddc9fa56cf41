// Lets a decoder program write the target itself: ten gigabytes of mostly zeroes cost more in JavaScript than in the program that makes them.
import { type ChildProcessByStdio, spawn, spawnSync } from 'node:child_process';
import { readFile } from 'node:fs/promises';
import type { Readable, Writable } from 'node:stream';
import { feed } from '#shared/transfer/compression/decompress.ts';
import { type DecoderProgram, decoderPrograms } from '#shared/transfer/compression/program.ts';
import { TransferError } from '#shared/transfer/fault.ts';
import { toolEnvironment } from '#shared/transfer/tool/run-tool.ts';

export type ProgramCompression = keyof typeof decoderPrograms;

/** Whether a program for this compression is there to write files with. */
export const canUnpackToFile = (compression: string): compression is ProgramCompression =>
  Object.hasOwn(decoderPrograms, compression) && isInstalled(decoderPrograms[compression as ProgramCompression]);

const isInstalled = ({ program }: DecoderProgram): boolean =>
  spawnSync(program, ['--version'], { stdio: 'ignore', env: toolEnvironment }).status === 0;

export interface FileUnpacking {
  readonly compression: ProgramCompression;
  readonly input: AsyncIterable<Buffer>;
  /** An empty regular file, open for writing at its beginning. The decoder leaves holes for zeroes. */
  readonly descriptor: number;
  /** Names the file in faults. */
  readonly path: string;
  /** The decoder is stopped soon after it has gone further than this. */
  readonly limitBytes: number;
  /** Makes the fault of going too far. */
  readonly tooLarge: () => TransferError;
  readonly signal: AbortSignal;
}

type Decoder = ChildProcessByStdio<Writable, null, Readable>;

/** Decoders seek over zeroes, which no limit of the kernel stops; where they are shows in the position of the shared descriptor. */
const watchMs = 100;
const positionOf = async (descriptor: number): Promise<number> =>
  Number(/^pos:\s*(\d+)/m.exec(await readFile(`/proc/self/fdinfo/${descriptor}`, 'utf8'))?.[1] ?? 0);

const maxComplaintChars = 1000;

const startDecoder = ({ compression, descriptor, limitBytes }: FileUnpacking): Decoder => {
  const { program, args } = decoderPrograms[compression];
  // In blocks of 512 bytes; one more than the limit, so that going beyond it can be observed.
  const script = `ulimit -c 0 && ulimit -f ${Math.ceil(limitBytes / 512) + 1} && exec "$@"`;
  return spawn('/bin/sh', ['-c', script, 'sh', program, ...args], {
    stdio: ['pipe', descriptor, 'pipe'],
    env: toolEnvironment,
  }) as Decoder;
};

/** Settles with the fault the decoder ended with. */
const endOf = (child: Decoder, { compression, path, tooLarge }: FileUnpacking): Promise<TransferError | undefined> => {
  let complaint = '';
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    complaint = (complaint + text).slice(-maxComplaintChars);
  });
  const toFault = (status: number | null, killedBy: string | null): TransferError | undefined => {
    if (status === 0) return undefined;
    if (killedBy === 'SIGXFSZ' || /file too large/i.test(complaint)) return tooLarge();
    if (/no space left|disk quota/i.test(complaint)) {
      return new TransferError('TargetFull', `no space left at ${path}; a larger volume is needed`);
    }
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

/** Kills the decoder once it is beyond the limit; `isBeyond` tells that it was. */
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

/** The length of what was unpacked is where the file ends. Throws what `input` throws, TransferError, and the signal's reason. */
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
