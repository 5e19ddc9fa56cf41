// qcow2 from a source that is read once from start to end (a file in a layer, a compressed one, a server without ranges): clusters are
// decompressed as they arrive; those whose tables are not known yet are kept in scratch space, and written once the whole file is verified.
import type { FileHandle } from 'node:fs/promises';
import { createDigester } from '#shared/transfer/published.ts';
import {
  type DecodePools,
  createDecodePools,
  createSegmentWork,
  segmentView,
} from '#shared/transfer/decode/segment-work.ts';
import { TransferError, writing } from '#shared/transfer/fault.ts';
import { bufferReader, corrupt } from '#shared/transfer/format/disk.ts';
import type { ClusterMap } from '#shared/transfer/format/qcow2/cluster-map.ts';
import { type Qcow2Header, readQcow2Header } from '#shared/transfer/format/qcow2/header.ts';
import { createKept, createSegmentPlanner, type Kept, queueOf } from '#shared/transfer/format/qcow2/segments.ts';
import { type PassingTables, createPassingTables, isAllKept } from '#shared/transfer/format/qcow2/passing.ts';
import { readClusterMap } from '#shared/transfer/format/qcow2/tables.ts';
import { complete, type Pass, type PassResult } from '#shared/transfer/pass.ts';
import { contentOf, verifiedDigests } from '#shared/transfer/published.ts';
import { readFully, writeFully } from '#shared/transfer/file-bytes.ts';
import { importScratch } from '#shared/transfer/scratch-route.ts';
import { type Scratch, fileReader, withScratch } from '#shared/transfer/sink/file.ts';
import { flushWhile } from '#shared/transfer/sink/flushing.ts';
import { createFlushing } from '#shared/transfer/sink/flushing.ts';
import type { Sink } from '#shared/transfer/sink/sink.ts';
import { readHead, joined } from '#shared/transfer/source/source.ts';

interface Passing {
  readonly pass: Pass;
  readonly sink: Sink;
  readonly header: Qcow2Header;
  readonly pools: DecodePools;
  readonly tables: PassingTables;
  readonly kept: Kept;
  readonly scratch: Scratch;
}

/** Writes kept bytes to scratch space, with flushes in between. `finish` throws the error of a flush. */
const createKeeper = (file: FileHandle, where: string) => {
  let written = 0;
  let failure: { readonly error: unknown } | undefined;
  const flushing = createFlushing(async () => {
    await file.datasync().catch((error: unknown) => {
      failure ??= { error };
    });
  });
  const throwFailure = (): void => {
    if (failure !== undefined) throw failure.error;
  };
  return {
    keep: (bytes: Buffer, position: number): Promise<void> =>
      writing(where, async () => {
        throwFailure();
        await writeFully(file, bytes, position);
        written += bytes.length;
        flushing.reach(written);
      }),
    finish: () => writing(where, () => flushing.settled().then(throwFailure)),
  };
};

/** Divides the stream into segments, decompresses the known part of each, keeps the rest. Returns the length of the file. */
const passBy = async ({ pass, pools, tables, kept, scratch }: Passing, content: AsyncIterable<Buffer>) => {
  const { segmentBytes, buffers } = pools;
  const keeper = createKeeper(scratch.file, pass.spec.scratchDir);
  const work = createSegmentWork(pools, createSegmentPlanner(tables.queue), ({ offset, buffer, bytes }, tasks) =>
    kept
      .rest(offset, bytes.length, tasks)
      .map(({ start, end }) => keeper.keep(segmentView(pools, buffer, start, end), offset + start)),
  );
  let [offset, filled, buffer] = [0, 0, await buffers.acquire()];
  const finishSegment = (): void => {
    const bytes = segmentView(pools, buffer, 0, filled);
    void work.take({ offset, buffer, bytes });
    tables.see(offset, bytes);
    offset += filled;
    filled = 0;
  };
  for await (const chunk of content) {
    pass.signal.throwIfAborted();
    for (let at = 0; at < chunk.length;) {
      const copied = chunk.copy(segmentView(pools, buffer, filled, segmentBytes), 0, at);
      at += copied;
      filled += copied;
      if (filled < segmentBytes) continue;
      finishSegment();
      buffer = await buffers.acquire();
    }
  }
  if (filled > 0) finishSegment();
  else buffers.release(buffer);
  await work.finish();
  await keeper.finish();
  return offset;
};

const fetchKept = async ({ file, path }: Scratch, target: Buffer, position: number): Promise<void> => {
  const count = await readFully(file, target, position);
  if (count < target.length) throw new TransferError('InternalFault', `the scratch file ${path} became shorter`);
};

/** Decompresses clusters from scratch space that came before their table. */
const catchUp = async ({ pools, scratch, pass }: Passing, missed: ClusterMap, size: number): Promise<void> => {
  const { segmentBytes, buffers, decoders } = pools;
  const planner = createSegmentPlanner(queueOf(missed));
  const pending: Promise<void>[] = [];
  let carriedBytes = 0;
  for (let base = 0; base < size; base += segmentBytes) {
    const length = Math.min(segmentBytes, size - base);
    const { tasks, ...next } = planner.next(base, length);
    if (tasks.length > 0) {
      pass.signal.throwIfAborted();
      // Sequential: each waits for a free buffer.
      const buffer = await buffers.acquire();
      const bytes = segmentView(pools, buffer, -carriedBytes, length);
      await fetchKept(scratch, bytes, base - carriedBytes);
      const decoding = decoders.decode({ buffer, tasks }).then(() => buffers.release(buffer));
      decoding.catch((error: unknown) => buffers.fail(error));
      pending.push(decoding);
    }
    ({ carriedBytes } = next);
  }
  await Promise.all(pending);
  if (!planner.isDone()) throw corrupt('the qcow2 has clusters that no part of the file holds');
};

type Ended = PassResult | 'over scratch';

const importPassing = async (passing: Passing, content: AsyncIterable<Buffer>): Promise<Ended> => {
  const { pass, sink, header, pools, tables, kept, scratch } = passing;
  const flusher = flushWhile(sink, () => pools.decoders.writtenBytes());
  try {
    const size = await passBy(passing, content);
    const digests = verifiedDigests(pass);
    pass.meter.enter('Converting', 98);
    await writing(pass.spec.scratchDir, () => scratch.file.truncate(size));
    const map = await readClusterMap(header, fileReader(scratch.file, size));
    const missed = map === undefined ? undefined : tables.missed(map);
    if (missed === undefined || !isAllKept(kept, tables, missed)) return 'over scratch';
    await catchUp(passing, missed, size);
    pass.meter.enter('Verifying', 99);
    await pools.decoders.kill();
    await flusher.stop();
    await complete(pass, sink, header.virtualSize);
    return { digests, inspection: pass.plan.inspection, writtenBytes: pools.decoders.writtenBytes() };
  } finally {
    await flusher.stop();
  }
};

const importOnce = async (pass: Pass, sink: Sink, content: AsyncIterator<Buffer>): Promise<Ended> => {
  const { head } = await readHead(content);
  const header = await readQcow2Header(bufferReader(head));
  if (header.virtualSize !== pass.plan.inspection.virtualSize) {
    throw new TransferError('SourceChanged', 'the size of the qcow2 has changed while it was read', {
      startOver: true,
    });
  }
  await sink.prepare(header.virtualSize);
  return withScratch(pass.spec.scratchDir, async (scratch) => {
    const pools = createDecodePools(sink, header, pass.plan.inspection.size ?? Infinity, 2);
    const tables = createPassingTables(header);
    const passing = { pass, sink, header, pools, tables, kept: createKept(), scratch };
    try {
      return await importPassing(passing, joined(head, content));
    } finally {
      await pools.decoders.kill();
    }
  });
};

/**
 * Falls back to a second pass over scratch space for images with more extents than the memory limit allows, or with clusters that are used
 * twice.
 */
export const importSequential = async (pass: Pass, sink: Sink): Promise<PassResult> => {
  const content = contentOf(pass)[Symbol.asyncIterator]();
  let ended: Ended;
  try {
    ended = await importOnce(pass, sink, content);
  } finally {
    await content.return?.();
  }
  if (ended !== 'over scratch') return ended;
  await sink.abandon();
  return importScratch({ ...pass, digester: createDigester(pass.spec.checksum) }, sink);
};
