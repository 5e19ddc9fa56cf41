// Decoders that are separate programs: their arguments, and the meaning of their error messages.
import { availableParallelism } from 'node:os';
import { TransferError } from '#shared/transfer/fault.ts';

export interface DecoderProgram {
  readonly program: string;
  readonly args: readonly string[];
  /** Debian package, for messages about a missing program. */
  readonly package: string;
  /** Maps its standard error to a fault of the data. */
  readonly toFault: (complaint: string) => TransferError;
}

/** The largest preset needs 65 MiB; more means a dictionary that no published image uses. The rest of the process shares the memory limit of the pod. */
const xzMemory = '192MiB';
/** Blocks are decompressed concurrently within this limit. */
const xzThreadMemory = '160MiB';

const truncated = (compression: string) =>
  new TransferError('ImageTruncated', `the ${compression} data ends too early: the file is cut off`);
const broken = (compression: string, message: string) =>
  new TransferError('ImageCorrupt', `the ${compression} data is broken: ${message.slice(0, 200)}`);

const xzFault = (complaint: string): TransferError => {
  const message = complaint.trim().replace(/^.*?\(stdin\): /s, '');
  if (/unexpected end of input/i.test(message)) return truncated('xz');
  if (/memory/i.test(message)) {
    return new TransferError(
      'UnsupportedFormat',
      `the xz data needs more than ${xzMemory} of memory to unpack; compress it with one of the presets`,
    );
  }
  return broken('xz', message);
};

const zstdFault = (complaint: string): TransferError => {
  const message = complaint.trim().replace(/^.*?\*stdin\*\S*\s*:\s*/s, '');
  if (/premature end|unexpected end|unknown header/i.test(message)) return truncated('zstd');
  if (/window|memory/i.test(message)) {
    return new TransferError(
      'UnsupportedFormat',
      'the zstd data needs a window above 128 MiB; compress it without --long',
    );
  }
  return broken('zstd', message);
};

export const decoderPrograms = {
  xz: {
    program: 'xz',
    args: [
      '--decompress',
      '--stdout',
      '--format=xz',
      '--quiet',
      // xz counts the processors of the node, not those available to its container.
      `--threads=${availableParallelism()}`,
      `--memlimit-decompress=${xzMemory}`,
      `--memlimit-mt-decompress=${xzThreadMemory}`,
    ],
    package: 'xz-utils (5.4 or newer)',
    toFault: xzFault,
  },
  zst: {
    program: 'zstd',
    args: ['--decompress', '--stdout', '--quiet', '--sparse'],
    package: 'zstd',
    toFault: zstdFault,
  },
} as const satisfies Record<string, DecoderProgram>;
