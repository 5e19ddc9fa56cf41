// Messages between the main thread and the decoding workers.
import type { Task } from '#shared/transfer/format/qcow2/segments.ts';
import type { HashStates, Savable } from '#shared/transfer/resume/hashes.ts';

// A pool of shared buffers with a fixed size: the memory limit of a transfer.

export interface BufferPool {
  readonly buffers: readonly SharedArrayBuffer[];
  /** Waits for a free buffer; returns its index. */
  acquire(): Promise<number>;
  hasFree(): boolean;
  release(index: number): void;
  /** Makes every pending or future `acquire` throw `error`. */
  fail(error: unknown): void;
}

export const createBufferPool = (count: number, bytes: number): BufferPool => {
  const buffers = Array.from({ length: count }, () => new SharedArrayBuffer(bytes));
  const free = [...buffers.keys()];
  const waiting: PromiseWithResolvers<number>[] = [];
  let failure: { readonly error: unknown } | undefined;
  return {
    buffers,
    acquire: async () => {
      if (failure !== undefined) throw failure.error;
      const index = free.pop();
      if (index !== undefined) return index;
      const turn = Promise.withResolvers<number>();
      waiting.push(turn);
      return turn.promise;
    },
    hasFree: () => free.length > 0,
    release: (index) => {
      const next = waiting.shift();
      if (next === undefined) free.push(index);
      else next.resolve(index);
    },
    fail: (error) => {
      failure ??= { error };
      for (const turn of waiting.splice(0)) turn.reject(error);
    },
  };
};

/** Passed to a worker at its start. */
export interface DecoderSetup {
  /** Segments, shared with the main thread; each starts with space for the bytes carried over from the previous one. */
  readonly buffers: readonly SharedArrayBuffer[];
  readonly carryBytes: number;
  /** Path of the target. */
  readonly path: string;
  readonly clusterSize: number;
  readonly compression: 'zlib' | 'zstd';
  /** Bytes of the guest's disk; nothing is written beyond it. */
  readonly virtualSize: number;
}

/** Tasks of one segment. */
export interface DecodeRequest {
  readonly buffer: number;
  readonly tasks: readonly Task[];
}

/** `fault`: the error; `system` is set if it is an error of the write. */
export type DecodeAnswer =
  | { readonly writtenBytes: number }
  | { readonly fault: { readonly message: string; readonly system?: string } };

/** Passed to the digesting worker at its start. */
export interface DigesterSetup {
  readonly buffers: readonly SharedArrayBuffer[];
  readonly algorithms: readonly string[];
  /** Default: never. */
  readonly savable?: Savable | undefined;
}

/** The next bytes of the file: their location, or a number of zeroes. */
export type DigestRequest =
  | { readonly buffer: number; readonly offset: number; readonly length: number }
  | { readonly zeroes: number };

export type DigestCommand = DigestRequest | 'finish' | 'save' | { readonly settle: 'savable' | 'fast' };
export type DigestAnswer =
  | 'done'
  | { readonly digests: Readonly<Record<string, string>> }
  | { readonly states: HashStates };
