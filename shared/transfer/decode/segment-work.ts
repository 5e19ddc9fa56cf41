// Processes a qcow2 in segments: their buffers, the workers that decompress them, and the bytes carried over from one segment to the next.
import { availableParallelism } from 'node:os';
import { createCollector } from '#shared/transfer/collect.ts';
import {
  type BufferPool,
  createBufferPool,
  type DecodeAnswer,
  type DecodeRequest,
  type DecoderSetup,
} from './message.ts';
import type { Qcow2Header } from '#shared/transfer/format/qcow2/header.ts';
import type { SegmentPlanner, Task } from '#shared/transfer/format/qcow2/segments.ts';
import type { Sink } from '#shared/transfer/sink/sink.ts';
import type { Segment } from '#shared/transfer/source/segments.ts';
import { toWriteFault } from '#shared/transfer/fault.ts';
import { corrupt } from '#shared/transfer/format/disk.ts';
import { createWorkerPool } from '#shared/transfer/workers/pool.ts';

/** Workers that decompress and write segments. */
interface DecodePool {
  /** Resolves once the segment is decompressed and written. Throws TransferError: ImageCorrupt, TargetFull, TargetFailed. */
  decode(request: DecodeRequest): Promise<void>;
  writtenBytes(): number;
  /** Terminates the workers at once. */
  kill(): Promise<void>;
}

const errorOf = (answer: Extract<DecodeAnswer, { fault: object }>, path: string): unknown => {
  const { message, system } = answer.fault;
  return system === undefined
    ? corrupt(message)
    : toWriteFault(Object.assign(new Error(message), { code: system }), path);
};

const createDecodePool = (setup: DecoderSetup, workers: number): DecodePool => {
  const script = new URL('./worker.ts', import.meta.url);
  const pool = createWorkerPool<DecodeRequest, DecodeAnswer>({ script, setup, count: workers, work: 'decoding' });
  let written = 0;
  return {
    decode: async (request) => {
      const answer = await pool.ask(request);
      if ('fault' in answer) throw errorOf(answer, setup.path);
      written += answer.writtenBytes;
    },
    writtenBytes: () => written,
    kill: () => pool.kill(),
  };
};

/** Large enough that requests are cheap, small enough that a dozen fit into a container. */
const leastSegmentBytes = 2 * 1024 * 1024;
const mostWorkers = 4;
/** A smaller file is decompressed before another worker would have started. */
const leastBytesForWorker = 8 * 1024 * 1024;

export interface SegmentSizes {
  /** A multiple of the cluster size. */
  readonly segmentBytes: number;
  /** Space at the start of each buffer for bytes of the previous segment. */
  readonly carryBytes: number;
}

/**
 * The stored length of a compressed cluster is at most twice its size, by the width of its field; it may start in one segment and end in the
 * next.
 */
export const sizesFor = ({ clusterSize }: Qcow2Header): SegmentSizes => {
  const segmentBytes = Math.max(leastSegmentBytes, 2 * clusterSize);
  return { segmentBytes, carryBytes: Math.min(segmentBytes, 2 * clusterSize + 512) };
};

export interface DecodePools extends SegmentSizes {
  readonly buffers: BufferPool;
  readonly decoders: DecodePool;
}

/** `size` of the file, or Infinity. `readers`: number of buffers that may be filled concurrently. */
export const createDecodePools = (sink: Sink, header: Qcow2Header, size: number, readers: number): DecodePools => {
  const sizes = sizesFor(header);
  const workers = Math.max(1, Math.min(availableParallelism(), mostWorkers, Math.ceil(size / leastBytesForWorker)));
  const buffers = createBufferPool(readers + 2 * workers, sizes.carryBytes + sizes.segmentBytes);
  const { clusterSize, compression, virtualSize } = header;
  const { carryBytes } = sizes;
  const setup = { buffers: buffers.buffers, carryBytes, path: sink.path, clusterSize, compression, virtualSize };
  return { ...sizes, buffers, decoders: createDecodePool(setup, workers) };
};

/** Bytes `from` to `to` of the segment in a buffer; `from` is negative for carried-over bytes. */
export const segmentView = ({ buffers, carryBytes }: DecodePools, buffer: number, from: number, to: number): Buffer =>
  Buffer.from(buffers.buffers[buffer] ?? new SharedArrayBuffer(0), carryBytes + from, to - from);

export interface SegmentWork {
  /**
   * Segments come in order and without gaps. Each buffer is released when all its users are done. Resolves with whether it succeeded. Never
   * throws.
   */
  take(segment: Segment): Promise<boolean>;
  /** Resolves once all work is done. Throws its first error. */
  finish(): Promise<void>;
}

/** `uses`: other work on each segment, besides decompressing its tasks. */
export const createSegmentWork = (
  pools: DecodePools,
  planner: SegmentPlanner,
  uses: (segment: Segment, tasks: readonly Task[]) => readonly Promise<void>[],
): SegmentWork => {
  const { buffers, decoders } = pools;
  const pending = new Set<Promise<boolean>>();
  const collectGarbage = createCollector();
  let carried: Uint8Array = new Uint8Array(0);
  let failure: { readonly error: unknown } | undefined;

  const track = (buffer: number, work: readonly Promise<void>[]): Promise<boolean> => {
    const all = Promise.all(work)
      .then(() => {
        buffers.release(buffer);
        return true;
      })
      .catch((error: unknown) => {
        failure ??= { error };
        buffers.fail(error);
        return false;
      })
      .finally(() => pending.delete(all));
    pending.add(all);
    return all;
  };
  return {
    take: (segment) => {
      const { offset, buffer, bytes } = segment;
      collectGarbage(bytes.length);
      const { tasks, carriedBytes } = planner.next(offset, bytes.length);
      segmentView(pools, buffer, -carried.length, 0).set(carried);
      carried = bytes.slice(bytes.length - carriedBytes);
      const decoding = tasks.length > 0 ? [decoders.decode({ buffer, tasks })] : [];
      return track(buffer, [...uses(segment, tasks), ...decoding]);
    },
    finish: async () => {
      await Promise.all(pending);
      if (failure !== undefined) throw failure.error;
    },
  };
};
