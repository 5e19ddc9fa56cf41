// Reads a whole file through parallel ranges and hands it on front to back, in buffers that are reused.
import type { BufferPool } from '#shared/transfer/decode/buffers.ts';
import type { Source } from '#shared/transfer/source/source.ts';

export interface Segment {
  /** Of its first byte in the file. */
  readonly offset: number;
  /** Index of its buffer; whoever takes the segment releases it. */
  readonly buffer: number;
  readonly bytes: Uint8Array;
}

export interface SegmentRead {
  readonly source: Source;
  readonly size: number;
  /** Bytes of a segment; the last one may be shorter. */
  readonly segmentBytes: number;
  /** Bytes at the start of each buffer that are left alone. */
  readonly headroom: number;
  readonly connections: number;
  readonly pool: BufferPool;
  /** Called in order of offset. What it throws ends the reading. */
  readonly onSegment: (segment: Segment) => void;
}

/** Throws what the source, the pool or `onSegment` throws, once no read is under way any more. */
export const readSegments = async (read: SegmentRead): Promise<void> => {
  const { source, size, segmentBytes, headroom, pool } = read;
  const ready = new Map<number, Segment>();
  let next = 0;
  let handedOn = 0;
  let failure: { readonly error: unknown } | undefined;

  const fail = (error: unknown): void => {
    failure ??= { error };
    pool.fail(error);
  };
  /** Buffer and place in the file are taken in one step: so the earliest segment always has a buffer, and nobody waits in a circle. */
  let turn: Promise<unknown> = Promise.resolve();
  const take = (): Promise<Segment | undefined> => {
    const taking = turn.then(async () => {
      if (next >= size || failure !== undefined) return undefined;
      const buffer = await pool.acquire();
      const offset = next;
      next += segmentBytes;
      const shared = pool.buffers[buffer] ?? new SharedArrayBuffer(0);
      return { offset, buffer, bytes: new Uint8Array(shared, headroom, Math.min(segmentBytes, size - offset)) };
    });
    turn = taking.catch(() => {});
    return taking;
  };
  const handOn = (): void => {
    for (let segment = ready.get(handedOn); segment !== undefined; segment = ready.get(handedOn)) {
      ready.delete(handedOn);
      handedOn += segmentBytes;
      read.onSegment(segment);
    }
  };
  const fetch = async (): Promise<void> => {
    try {
      for (let segment = await take(); segment !== undefined; segment = await take()) {
        await source.readInto(segment.offset, segment.bytes);
        ready.set(segment.offset, segment);
        if (failure === undefined) handOn();
      }
    } catch (error) {
      fail(error);
    }
  };
  await Promise.all(Array.from({ length: read.connections }, fetch));
  if (failure !== undefined) throw failure.error;
};
