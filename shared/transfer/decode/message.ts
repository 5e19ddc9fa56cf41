// What the main thread and the decoding workers say to each other.
import type { HashStates, Savable } from '#shared/transfer/resume/hashes.ts';
import type { Task } from '#shared/transfer/format/qcow2/segments.ts';

/** Given to a worker at its start. */
export interface DecoderSetup {
  /** Segments, shared with the main thread; each begins with room for what is carried over from the one before. */
  readonly buffers: readonly SharedArrayBuffer[];
  readonly carryBytes: number;
  /** Where to write. */
  readonly path: string;
  readonly clusterSize: number;
  readonly compression: 'zlib' | 'zstd';
  /** Bytes of the guest's disk; nothing is written beyond. */
  readonly virtualSize: number;
}

/** Work on one segment. */
export interface DecodeRequest {
  readonly buffer: number;
  readonly tasks: readonly Task[];
}

/** `fault` holds what went wrong; `system` is set when it was the writing. */
export type DecodeAnswer =
  | { readonly writtenBytes: number }
  | { readonly fault: { readonly message: string; readonly system?: string } };

/** Given to the digesting worker at its start. */
export interface DigesterSetup {
  readonly buffers: readonly SharedArrayBuffer[];
  readonly algorithms: readonly string[];
  /** Left out: never. */
  readonly savable?: Savable | undefined;
}

/** The next bytes of the file: where they are, or how many zeroes. */
export type DigestRequest =
  | { readonly buffer: number; readonly offset: number; readonly length: number }
  | { readonly zeroes: number };

export type DigestCommand = DigestRequest | 'finish' | 'save' | { readonly settle: 'savable' | 'fast' };
export type DigestAnswer =
  | 'done'
  | { readonly digests: Readonly<Record<string, string>> }
  | { readonly states: HashStates };
