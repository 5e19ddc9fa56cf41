// qcow2 in one pass: the tables first, then the file from front to back in parallel ranges, unpacked and written by workers as it comes.
import { algorithmsFor, verifyChecksum } from '#shared/transfer/checksum.ts';
import {
  type DecodePools,
  createDecodePools,
  createSegmentWork,
  flushWhile,
} from '#shared/transfer/decode/segment-work.ts';
import {
  type SharedDigester,
  createInlineDigester,
  createSharedDigester,
} from '#shared/transfer/decode/shared-digester.ts';
import { corrupt } from '#shared/transfer/format/disk.ts';
import type { ClusterMap } from '#shared/transfer/format/qcow2/cluster-map.ts';
import { type Qcow2Header, readQcow2Header } from '#shared/transfer/format/qcow2/header.ts';
import { createSegmentPlanner, queueOf } from '#shared/transfer/format/qcow2/segments.ts';
import { readClusterMap } from '#shared/transfer/format/qcow2/tables.ts';
import { type Pass, type PassResult, complete } from '#shared/transfer/pass.ts';
import { rangedReader } from '#shared/transfer/plan.ts';
import { importScratch } from '#shared/transfer/scratch-route.ts';
import type { Sink } from '#shared/transfer/sink/sink.ts';
import { createConnections } from '#shared/transfer/source/connections.ts';
import { readSegments } from '#shared/transfer/source/segments.ts';

/** Of a server on the same machine more would make it slower, of one far away four are hardly ever enough. */
const firstConnections = 4;
const mostConnections = 8;
/** A thread takes a tenth of a second to start, in which it could digest so much. */
const inlineDigestBytes = 64 * 1024 * 1024;

interface Pools extends DecodePools {
  readonly digester: SharedDigester;
}

const createPools = (pass: Pass, sink: Sink, header: Qcow2Header): Pools => {
  const size = pass.plan.inspection.size ?? Infinity;
  const decoding = createDecodePools(sink, header, size, mostConnections);
  return {
    ...decoding,
    digester: (size < inlineDigestBytes ? createInlineDigester : createSharedDigester)({
      buffers: decoding.buffers.buffers,
      algorithms: algorithmsFor(pass.spec.checksum),
    }),
  };
};

const transferData = async (pass: Pass, sink: Sink, pools: Pools, map: ClusterMap) => {
  const { segmentBytes, carryBytes, buffers, decoders, digester } = pools;
  const size = pass.plan.inspection.size ?? 0;
  const flusher = flushWhile(sink, decoders);
  const planner = createSegmentPlanner(queueOf(map));
  const work = createSegmentWork(pools, planner, ({ buffer, bytes }) => [
    digester.update({ buffer, offset: carryBytes, length: bytes.length }),
  ]);
  try {
    await readSegments({
      source: pass.source,
      size,
      segmentBytes,
      headroom: carryBytes,
      connections: createConnections({ first: firstConnections, most: mostConnections, now: () => performance.now() }),
      pool: buffers,
      onSegment: (segment) => {
        pass.signal.throwIfAborted();
        pass.meter.advance((segment.offset + segment.bytes.length) / size);
        work.take(segment);
      },
    });
    pass.meter.enter('Converting', 98);
    await work.finish();
    if (!planner.isDone()) throw corrupt('the qcow2 has clusters that no part of the file holds');
    return { digests: await digester.finish(), writtenBytes: decoders.writtenBytes() };
  } finally {
    await flusher.stop();
  }
};

interface Mapped {
  readonly header: Qcow2Header;
  readonly map: ClusterMap;
}

const importMapped = async (pass: Pass, sink: Sink, pools: Pools, { header, map }: Mapped): Promise<PassResult> => {
  const { inspection } = pass.plan;
  const { virtualSize } = header;
  pass.meter.expect(inspection.size);
  await sink.prepare(virtualSize);
  const { digests, writtenBytes } = await transferData(pass, sink, pools, map);
  pass.meter.enter('Verifying', 99);
  verifyChecksum(pass.spec.checksum, digests);
  await pools.decoders.kill();
  await complete(pass, sink, virtualSize);
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
