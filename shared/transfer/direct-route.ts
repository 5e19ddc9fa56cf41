// qcow2 in one pass: the tables first, then the file from front to back in parallel ranges, unpacked and written by workers as it comes.
import { availableParallelism } from 'node:os';
import { type BufferPool, createBufferPool } from '#shared/transfer/decode/buffers.ts';
import { type DecodePool, createDecodePool } from '#shared/transfer/decode/pool.ts';
import { corrupt } from '#shared/transfer/format/disk.ts';
import type { ClusterMap } from '#shared/transfer/format/qcow2/cluster-map.ts';
import { type Qcow2Header, readQcow2Header } from '#shared/transfer/format/qcow2/header.ts';
import { createSegmentPlanner } from '#shared/transfer/format/qcow2/segments.ts';
import { readClusterMap } from '#shared/transfer/format/qcow2/tables.ts';
import type { Pass, PassResult } from '#shared/transfer/pass.ts';
import { rangedReader } from '#shared/transfer/plan.ts';
import { verifiedDigests } from '#shared/transfer/published.ts';
import { importScratch } from '#shared/transfer/scratch-route.ts';
import type { Sink } from '#shared/transfer/sink/sink.ts';
import { type Segment, readSegments } from '#shared/transfer/source/segments.ts';

/** Large enough that requests cost nothing, small enough that a dozen fit into a container. */
const segmentBytes = 4 * 1024 * 1024;
const connections = 4;
const mostWorkers = 4;
const flushEveryBytes = 128 * 1024 * 1024;

/** A compressed cluster's stored length is at most twice its size, by the width of its field. */
const carryBytesOf = ({ clusterSize }: Qcow2Header): number => Math.min(segmentBytes, 2 * clusterSize + 512);

/** Takes segments in order: digests, work for the workers, and what one segment must leave to the next. */
const createSegmentTaker = (
  pass: Pass,
  map: ClusterMap,
  carryBytes: number,
  pools: { buffers: BufferPool; decoders: DecodePool },
) => {
  const planner = createSegmentPlanner(map);
  const pending = new Set<Promise<void>>();
  let carried: Uint8Array = new Uint8Array(0);
  let failure: { readonly error: unknown } | undefined;

  const decode = (buffer: number, tasks: Parameters<DecodePool['decode']>[0]['tasks']): void => {
    const work = pools.decoders
      .decode({ buffer, tasks })
      .catch((error: unknown) => {
        failure ??= { error };
        pools.buffers.fail(error);
      })
      .finally(() => {
        pending.delete(work);
        pools.buffers.release(buffer);
      });
    pending.add(work);
  };
  return {
    take: ({ offset, buffer, bytes }: Segment): void => {
      pass.signal.throwIfAborted();
      pass.digester.update(bytes);
      pass.meter.advance((offset + bytes.length) / (pass.plan.inspection.size ?? Infinity));
      const { tasks, carriedBytes } = planner.next(offset, bytes.length);
      const shared = pools.buffers.buffers[buffer] ?? new SharedArrayBuffer(0);
      new Uint8Array(shared, carryBytes - carried.length, carried.length).set(carried);
      carried = bytes.slice(bytes.length - carriedBytes);
      if (tasks.length > 0) decode(buffer, tasks);
      else pools.buffers.release(buffer);
    },
    finish: async (): Promise<void> => {
      await Promise.all(pending);
      if (failure !== undefined) throw failure.error;
      if (!planner.isDone()) throw corrupt('the qcow2 has clusters that no part of the file holds');
    },
  };
};

/** Flushes whenever enough was written since the last time; `stop` waits for the flush under way. */
const flushWhile = (sink: Sink, decoders: DecodePool) => {
  let flushedAt = 0;
  let flushing: Promise<void> | undefined;
  const timer = setInterval(() => {
    if (flushing !== undefined || decoders.writtenBytes() - flushedAt < flushEveryBytes) return;
    flushedAt = decoders.writtenBytes();
    // A flush that fails here fails again at the end, where it is seen.
    flushing = sink.flush().then(clear, clear);
  }, 50);
  const clear = (): void => {
    flushing = undefined;
  };
  return {
    stop: async (): Promise<void> => {
      clearInterval(timer);
      await flushing;
    },
  };
};

const transferData = async (pass: Pass, sink: Sink, header: Qcow2Header, map: ClusterMap): Promise<number> => {
  const carryBytes = carryBytesOf(header);
  const workers = Math.min(availableParallelism(), mostWorkers);
  const buffers = createBufferPool(connections + 2 * workers, carryBytes + segmentBytes);
  const { clusterSize, compression, virtualSize } = header;
  const setup = { buffers: buffers.buffers, carryBytes, path: sink.path, clusterSize, compression, virtualSize };
  const decoders = createDecodePool(setup, workers);
  const flusher = flushWhile(sink, decoders);
  const taker = createSegmentTaker(pass, map, carryBytes, { buffers, decoders });
  try {
    await readSegments({
      source: pass.source,
      size: pass.plan.inspection.size ?? 0,
      segmentBytes,
      headroom: carryBytes,
      connections,
      pool: buffers,
      onSegment: (segment) => taker.take(segment),
    });
    pass.digester.finish();
    pass.meter.enter('Converting', 98);
    await taker.finish();
    await decoders.close();
    return decoders.writtenBytes();
  } finally {
    await decoders.kill();
    await flusher.stop();
  }
};

/** Falls back to scratch space for images with more extents than memory is set aside for. */
export const importDirect = async (pass: Pass, sink: Sink): Promise<PassResult> => {
  const { inspection, facts } = pass.plan;
  const reader = rangedReader(pass.source, facts);
  const header = await readQcow2Header(reader);
  const map = await readClusterMap(header, reader);
  if (map === undefined) return importScratch(pass, sink);
  pass.meter.expect(inspection.size);
  await sink.prepare(header.virtualSize);
  const writtenBytes = await transferData(pass, sink, header, map);
  pass.meter.enter('Verifying', 99);
  const digests = verifiedDigests(pass);
  await sink.commit(header.virtualSize);
  return { digests, inspection, writtenBytes };
};
