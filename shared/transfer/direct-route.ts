// qcow2 in one pass: the tables first, then the file from front to back in parallel ranges, unpacked and written by workers as it comes.
import { availableParallelism } from 'node:os';
import { algorithmsFor, verifyChecksum } from '#shared/transfer/checksum.ts';
import { type BufferPool, createBufferPool } from '#shared/transfer/decode/buffers.ts';
import { type DecodePool, createDecodePool } from '#shared/transfer/decode/pool.ts';
import {
  type SharedDigester,
  createInlineDigester,
  createSharedDigester,
} from '#shared/transfer/decode/shared-digester.ts';
import { corrupt } from '#shared/transfer/format/disk.ts';
import type { ClusterMap } from '#shared/transfer/format/qcow2/cluster-map.ts';
import { type Qcow2Header, readQcow2Header } from '#shared/transfer/format/qcow2/header.ts';
import { createSegmentPlanner } from '#shared/transfer/format/qcow2/segments.ts';
import { readClusterMap } from '#shared/transfer/format/qcow2/tables.ts';
import type { Pass, PassResult } from '#shared/transfer/pass.ts';
import { rangedReader } from '#shared/transfer/plan.ts';
import { importScratch } from '#shared/transfer/scratch-route.ts';
import type { Sink } from '#shared/transfer/sink/sink.ts';
import { createConnections } from '#shared/transfer/source/connections.ts';
import { type Segment, readSegments } from '#shared/transfer/source/segments.ts';

/** Large enough that requests cost nothing, small enough that a dozen fit into a container. */
const leastSegmentBytes = 2 * 1024 * 1024;
/** Of a server on the same machine more would make it slower, of one far away four are hardly ever enough. */
const firstConnections = 4;
const mostConnections = 8;
const mostWorkers = 4;
/** A file smaller than that is unpacked before another worker would have started. */
const leastBytesForWorker = 8 * 1024 * 1024;
const flushEveryBytes = 128 * 1024 * 1024;

/** A compressed cluster's stored length is at most twice its size, by the width of its field; it may begin in one segment and end in the next. */
const sizesFor = ({ clusterSize }: Qcow2Header) => {
  const segmentBytes = Math.max(leastSegmentBytes, 2 * clusterSize);
  return { segmentBytes, carryBytes: Math.min(segmentBytes, 2 * clusterSize + 512) };
};

interface Pools {
  readonly buffers: BufferPool;
  readonly decoders: DecodePool;
  readonly digester: SharedDigester;
}

/** Takes segments in order: digests, work for the workers, and what one segment must leave to the next. */
const createSegmentTaker = (pass: Pass, map: ClusterMap, carryBytes: number, pools: Pools) => {
  const planner = createSegmentPlanner(map);
  const pending = new Set<Promise<void>>();
  let carried: Uint8Array = new Uint8Array(0);
  let failure: { readonly error: unknown } | undefined;

  /** The buffer is free again once everybody is done with it. */
  const track = (buffer: number, uses: readonly Promise<void>[]): void => {
    const work = Promise.all(uses)
      .then(() => pools.buffers.release(buffer))
      .catch((error: unknown) => {
        failure ??= { error };
        pools.buffers.fail(error);
      })
      .finally(() => pending.delete(work));
    pending.add(work);
  };
  return {
    take: ({ offset, buffer, bytes }: Segment): void => {
      pass.signal.throwIfAborted();
      pass.meter.advance((offset + bytes.length) / (pass.plan.inspection.size ?? Infinity));
      const { tasks, carriedBytes } = planner.next(offset, bytes.length);
      const shared = pools.buffers.buffers[buffer] ?? new SharedArrayBuffer(0);
      new Uint8Array(shared, carryBytes - carried.length, carried.length).set(carried);
      carried = bytes.slice(bytes.length - carriedBytes);
      const digest = pools.digester.update({ buffer, offset: carryBytes, length: bytes.length });
      track(buffer, tasks.length > 0 ? [digest, pools.decoders.decode({ buffer, tasks })] : [digest]);
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

/** A thread takes a tenth of a second to start, in which it could digest so much. */
const inlineDigestBytes = 64 * 1024 * 1024;

const createPools = (pass: Pass, sink: Sink, header: Qcow2Header): Pools => {
  const { segmentBytes, carryBytes } = sizesFor(header);
  const size = pass.plan.inspection.size ?? Infinity;
  const workers = Math.max(1, Math.min(availableParallelism(), mostWorkers, Math.ceil(size / leastBytesForWorker)));
  const buffers = createBufferPool(mostConnections + 2 * workers, carryBytes + segmentBytes);
  const { clusterSize, compression, virtualSize } = header;
  const setup = { buffers: buffers.buffers, carryBytes, path: sink.path, clusterSize, compression, virtualSize };
  return {
    buffers,
    decoders: createDecodePool(setup, workers),
    digester: (size < inlineDigestBytes ? createInlineDigester : createSharedDigester)({
      buffers: buffers.buffers,
      algorithms: algorithmsFor(pass.spec.checksum),
    }),
  };
};

const transferData = async (pass: Pass, sink: Sink, pools: Pools, { header, map }: Mapped) => {
  const { segmentBytes, carryBytes } = sizesFor(header);
  const flusher = flushWhile(sink, pools.decoders);
  const taker = createSegmentTaker(pass, map, carryBytes, pools);
  try {
    await readSegments({
      source: pass.source,
      size: pass.plan.inspection.size ?? 0,
      segmentBytes,
      headroom: carryBytes,
      connections: createConnections({ first: firstConnections, most: mostConnections, now: () => performance.now() }),
      pool: pools.buffers,
      onSegment: (segment) => taker.take(segment),
    });
    pass.meter.enter('Converting', 98);
    await taker.finish();
    const digests = await pools.digester.finish();
    return { digests, writtenBytes: pools.decoders.writtenBytes() };
  } finally {
    await flusher.stop();
  }
};

interface Mapped {
  readonly header: Qcow2Header;
  readonly map: ClusterMap;
}

const importMapped = async (pass: Pass, sink: Sink, pools: Pools, mapped: Mapped): Promise<PassResult> => {
  const { inspection } = pass.plan;
  const { virtualSize } = mapped.header;
  pass.meter.expect(inspection.size);
  await sink.prepare(virtualSize);
  const { digests, writtenBytes } = await transferData(pass, sink, pools, mapped);
  pass.meter.enter('Verifying', 99);
  verifyChecksum(pass.spec.checksum, digests);
  await pools.decoders.kill();
  await pass.source.confirm?.();
  await sink.commit(virtualSize);
  return { digests, inspection, writtenBytes };
};

/** Falls back to scratch space for images with more extents than memory is set aside for. */
export const importDirect = async (pass: Pass, sink: Sink): Promise<PassResult> => {
  const reader = rangedReader(pass.source, pass.plan.facts);
  const header = await readQcow2Header(reader);
  // The workers start while the tables are read.
  const pools = createPools(pass, sink, header);
  try {
    const map = await readClusterMap(header, reader);
    if (map !== undefined) return await importMapped(pass, sink, pools, { header, map });
  } finally {
    await Promise.all([pools.decoders.kill(), pools.digester.kill()]);
  }
  return importScratch(pass, sink);
};
