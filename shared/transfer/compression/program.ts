// The decoders that are programs of their own: how each is called, and what its complaints mean.
import { availableParallelism } from 'node:os';
import { TransferError } from '#shared/transfer/fault.ts';

export interface DecoderProgram {
  readonly program: string;
  readonly args: readonly string[];
  /** Debian package, for whoever misses the program. */
  readonly package: string;
  /** What it said on standard error, as a fault of the data. */
  readonly toFault: (complaint: string) => TransferError;
}

/** The largest preset needs 65 MiB; more means a dictionary nobody publishes images with. What a pod may have is shared with the rest of us. */
const xzMemory = '192MiB';
/** Blocks are unpacked side by side as long as they need no more than this. */
const xzThreadMemory = '160MiB';

const truncated = (compression: string) =>
  new TransferError('ImageTruncated', `the ${compression} data ends too early: the file is cut off`);
const broken = (compression: string, words: string) =>
  new TransferError('ImageCorrupt', `the ${compression} data is broken: ${words.slice(0, 200)}`);

const xzFault = (complaint: string): TransferError => {
  const words = complaint.trim().replace(/^.*?\(stdin\): /s, '');
  if (/unexpected end of input/i.test(words)) return truncated('xz');
  if (/memory/i.test(words)) {
    return new TransferError(
      'UnsupportedFormat',
      `the xz data needs more than ${xzMemory} of memory to unpack; compress it with one of the presets`,
    );
  }
  return broken('xz', words);
};

const zstdFault = (complaint: string): TransferError => {
  const words = complaint.trim().replace(/^.*?\*stdin\*\S*\s*:\s*/s, '');
  if (/premature end|unexpected end|unknown header/i.test(words)) return truncated('zstd');
  if (/window|memory/i.test(words)) {
    return new TransferError(
      'UnsupportedFormat',
      'the zstd data needs a window above 128 MiB; compress it without --long',
    );
  }
  return broken('zstd', words);
};

export const decoderPrograms = {
  xz: {
    program: 'xz',
    args: [
      '--decompress',
      '--stdout',
      '--format=xz',
      '--quiet',
      // xz counts the processors of the node, not those its container may use.
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
