// qcow2 in one pass: first the tables, then the file from start to end in parallel ranges, decompressed and written by workers as it arrives.
import { algorithmsFor, verifyChecksum } from '#shared/transfer/published.ts';
import {
  type DecodePools,
  createDecodePools,
  createSegmentWork,
  sizesFor,
} from '#shared/transfer/decode/segment-work.ts';
import {
  type SavableDigester,
  type SharedDigester,
  createInlineDigester,
  createSharedDigester,
} from '#shared/transfer/decode/shared-digester.ts';
import { corrupt } from '#shared/transfer/format/disk.ts';
import type { ClusterMap } from '#shared/transfer/format/qcow2/cluster-map.ts';
import { type Qcow2Header, readQcow2Header } from '#shared/transfer/format/qcow2/header.ts';
import { createSegmentPlanner, queueFrom } from '#shared/transfer/format/qcow2/segments.ts';
import { readClusterMap } from '#shared/transfer/format/qcow2/tables.ts';
import { type Pass, type PassResult, complete } from '#shared/transfer/pass.ts';
import { type Mark, markKey, findMark } from '#shared/transfer/resume/mark.ts';
import { type Saver, createSaver } from '#shared/transfer/resume/saver.ts';
import { rangedReader } from '#shared/transfer/plan.ts';
import { importScratch } from '#shared/transfer/scratch-route.ts';
import { flushWhile } from '#shared/transfer/sink/flushing.ts';
import type { Sink } from '#shared/transfer/sink/sink.ts';
import { createConnections, readSegments } from '#shared/transfer/source/segments.ts';

/** More would be slower for a server on the same machine; four are rarely enough for a remote one. */
const firstConnections = 4;
const mostConnections = 8;
/** Starting a thread takes a tenth of a second, enough to digest this many bytes. */
const inlineDigestBytes = 64 * 1024 * 1024;

interface Pools extends DecodePools {
  readonly digester: SharedDigester;
  /** The same digester, if another process can continue it. */
  readonly savable: SavableDigester | undefined;
}

const createPools = (pass: Pass, sink: Sink, header: Qcow2Header, mark: Mark | undefined): Pools => {
  const size = pass.plan.inspection.size ?? Infinity;
  const decoding = createDecodePools(sink, header, size, mostConnections);
  const setup = { buffers: decoding.buffers.buffers, algorithms: algorithmsFor(pass.spec.checksum) };
  if (mark === undefined && size < pass.saving.leastBytes) {
    const create = size < inlineDigestBytes ? createInlineDigester : createSharedDigester;
    return { ...decoding, digester: create(setup), savable: undefined };
  }
  const savable = createSharedDigester({
    ...setup,
    savable: mark === undefined ? 'undecided' : { states: mark.states },
  });
  return { ...decoding, digester: savable, savable };
};

interface Data {
  readonly pass: Pass;
  readonly sink: Sink;
  readonly pools: Pools;
  readonly map: ClusterMap;
  readonly mark: Mark | undefined;
  readonly virtualSize: number;
}

/** The whole segment after a mark is also written: see `queueFrom`. */
const saverOf = ({ pass, sink, pools, mark, virtualSize }: Data): Saver | undefined => {
  const { savable, decoders, segmentBytes } = pools;
  const journal = sink.journal();
  const key = markKey(pass, virtualSize);
  if (savable === undefined || journal === undefined || key === undefined) return undefined;
  return createSaver({
    journal,
    key,
    size: pass.plan.inspection.size ?? 0,
    from: mark?.position ?? 0,
    overlapBytes: segmentBytes,
    digests: savable,
    flush: () => sink.flush(),
    writtenBytes: () => (mark?.writtenBytes ?? 0) + decoders.writtenBytes(),
    policy: pass.saving,
    now: () => performance.now(),
  });
};

const transferData = async (data: Data) => {
  const { pass, sink, pools, map, mark } = data;
  const { segmentBytes, carryBytes, buffers, decoders, digester } = pools;
  const size = pass.plan.inspection.size ?? 0;
  const from = mark?.position ?? 0;
  const flusher = flushWhile(sink, () => decoders.writtenBytes());
  const saver = saverOf(data);
  const planner = createSegmentPlanner(queueFrom(map, from));
  const work = createSegmentWork(pools, planner, ({ buffer, bytes }) => [
    digester.update({ buffer, offset: carryBytes, length: bytes.length }),
  ]);
  try {
    await readSegments({
      source: pass.source,
      size,
      from,
      segmentBytes,
      headroom: carryBytes,
      connections: createConnections({ first: firstConnections, most: mostConnections, now: () => performance.now() }),
      pool: buffers,
      onSegment: (segment) => {
        pass.signal.throwIfAborted();
        const end = segment.offset + segment.bytes.length;
        pass.meter.advance(end / size);
        const isWritten = work.take(segment);
        saver?.see(end, isWritten);
      },
    });
    pass.meter.enter('Converting', 98);
    await work.finish();
    if (!planner.isDone()) throw corrupt('the qcow2 has clusters that no part of the file holds');
    return { digests: await digester.finish(), writtenBytes: (mark?.writtenBytes ?? 0) + decoders.writtenBytes() };
  } finally {
    await saver?.stop();
    await flusher.stop();
  }
};

const importMapped = async (data: Data): Promise<PassResult> => {
  const { pass, sink, pools, mark, virtualSize } = data;
  const { inspection } = pass.plan;
  pass.meter.expect(inspection.size);
  if (mark === undefined) await sink.prepare(virtualSize);
  const { digests, writtenBytes } = await transferData(data);
  pass.meter.enter('Verifying', 99);
  verifyChecksum(pass.spec.checksum, digests);
  await pools.decoders.kill();
  await complete(pass, sink, virtualSize);
  return { digests, inspection, writtenBytes };
};

/** Falls back to scratch space for images with more extents than the memory limit allows. */
export const importDirect = async (pass: Pass, sink: Sink): Promise<PassResult> => {
  const reader = rangedReader(pass.source, pass.plan.facts);
  const header = await readQcow2Header(reader);
  const { virtualSize } = header;
  const { segmentBytes } = sizesFor(header);
  const isUsable = ({ position, states }: Mark) =>
    position % segmentBytes === 0 && algorithmsFor(pass.spec.checksum).every((name) => name in states);
  const mark = await findMark(pass, sink, virtualSize, isUsable);
  // The workers start while the tables are read.
  const pools = createPools(pass, sink, header, mark);
  try {
    const map = await readClusterMap(header, reader);
    if (map !== undefined) return await importMapped({ pass, sink, pools, map, mark, virtualSize });
  } finally {
    await Promise.all([pools.decoders.kill(), pools.digester.kill()]);
  }
  return importScratch(pass, sink);
};
