// A qcow2 with its tables first: it can be sent from start to end, its length is known before its first byte, and any range of it can be read.
import type { Encoder } from '#shared/transfer/export/encoder.ts';
import type { DataExtent, ExportVolume } from '#shared/transfer/export/volume.ts';
import { clustersOf } from '#shared/transfer/export/qcow2/packing.ts';
import { type ExportLayout, clustersPerTable, layOut } from '#shared/transfer/export/qcow2/layout.ts';
import {
  type Packing,
  clusterBytes,
  createPacking,
  placeCluster,
  plainLength,
} from '#shared/transfer/export/qcow2/packing.ts';
import { TransferError } from '#shared/transfer/fault.ts';

interface Span {
  readonly first: number;
  readonly end: number;
}

export interface PlannedQcow2 {
  readonly size: number;
  /** Bytes `first` to `end`; a piece is valid until the next one is requested. Throws SourceChanged if the volume has changed since. */
  bytes(span: Span): AsyncGenerator<Uint8Array, void, undefined>;
}

/** From the map only: every cluster with data is stored uncompressed. */
const planByMap = (packing: Packing, { extents }: ExportVolume): void => {
  for (const { start, end } of extents) {
    for (let cluster = start / clusterBytes; cluster * clusterBytes < end; cluster++) packing.set(cluster, plainLength);
  }
};

/** By reading, and compressing if requested, everything once. */
const planByReading = async (packing: Packing, { extents }: ExportVolume, encoder: Encoder): Promise<void> => {
  for await (const piece of encoder.encode(extents)) {
    for (const { cluster, length } of clustersOf(piece)) packing.set(cluster, length);
  }
};

export interface PlanOptions {
  readonly volume: ExportVolume;
  readonly encoder: Encoder;
  readonly compression: 'none' | 'zlib' | 'zstd';
  /** `read`: zeroes outside of holes are omitted too, at the cost of reading twice. Compressed files are always read twice. */
  readonly by: 'map' | 'read';
}

/** Guest clusters whose data overlaps the span. */
const extentsFor = (
  layout: ExportLayout,
  packing: Packing,
  size: number,
  { first, end }: Span,
): readonly DataExtent[] => {
  const tables = Math.ceil(packing.clusters / clustersPerTable);
  let table = 0;
  while (table + 1 < tables && layout.tableStart(table + 1) <= first) table++;
  let position = layout.tableStart(table);
  const found: { start: number; end: number }[] = [];
  for (let cluster = table * clustersPerTable; cluster < packing.clusters && position < end; cluster++) {
    const length = packing.lengthOf(cluster);
    if (length === 0) continue;
    position = placeCluster(position, length).end;
    if (position <= first) continue;
    const start = cluster * clusterBytes;
    const last = found.at(-1);
    const to = Math.min(size, start + clusterBytes);
    if (last?.end === start) last.end = to;
    else found.push({ start, end: to });
  }
  return found;
};

const startOf = (layout: ExportLayout, packing: Packing, cluster: number): number => {
  const table = Math.floor(cluster / clustersPerTable);
  let position = layout.tableStart(table);
  for (let before = table * clustersPerTable; before < cluster; before++)
    if (packing.lengthOf(before) !== 0) position = placeCluster(position, packing.lengthOf(before)).end;
  return position;
};

const changed = (): TransferError =>
  new TransferError(
    'SourceChanged',
    'the volume was written to while it was exported; export it while it is not in use, or export a snapshot',
  );

const zeroes = new Uint8Array(clusterBytes);

/** The part of `bytes`, located at `position`, that is within the span. */
const cut = (bytes: Uint8Array, position: number, { first, end }: Span): Uint8Array =>
  bytes.subarray(Math.max(0, first - position), Math.max(0, Math.min(bytes.length, end - position)));

interface Planned extends PlanOptions {
  readonly packing: Packing;
  readonly layout: ExportLayout;
  /** Clusters were planned without reading them: zero clusters count as data. */
  readonly isByMap: boolean;
}

/** The part of the data that is within the span. */
async function* dataOf(planned: Planned, span: Span): AsyncGenerator<Uint8Array, void, undefined> {
  const { packing, layout, volume, encoder, isByMap } = planned;
  const extents = extentsFor(layout, packing, volume.size, span);
  let expected = (extents[0]?.start ?? 0) / clusterBytes;
  let position = startOf(layout, packing, expected);
  function* place(length: number, bytes: Uint8Array): Generator<Uint8Array, void, undefined> {
    const { start, end } = placeCluster(position, length);
    yield cut(zeroes.subarray(0, start - position), position, span);
    yield cut(bytes, start, span);
    position = end;
  }
  /** Skips clusters that turned out to be zero. */
  function* skipTo(cluster: number): Generator<Uint8Array, void, undefined> {
    for (; expected < cluster; expected++) {
      if (packing.lengthOf(expected) === 0) continue;
      if (!isByMap) throw changed();
      yield* place(plainLength, zeroes);
    }
  }
  for await (const piece of encoder.encode(extents)) {
    for (const { cluster, length, bytes } of clustersOf(piece)) {
      if (packing.lengthOf(cluster) !== length) throw changed();
      yield* skipTo(cluster);
      yield* place(length, bytes);
      expected = cluster + 1;
    }
  }
  yield* skipTo(Math.ceil((extents.at(-1)?.end ?? 0) / clusterBytes));
}

async function* bytesOf(planned: Planned, span: Span): AsyncGenerator<Uint8Array, void, undefined> {
  const { dataStart, dataEnd, size, ...layout } = planned.layout;
  const firstTable = Math.floor(span.first / clusterBytes) * clusterBytes;
  for (let at = firstTable; at < Math.min(span.end, dataStart); at += clusterBytes)
    yield cut(layout.tableCluster(at), at, span);
  if (span.end > dataStart) yield* dataOf(planned, { first: Math.max(span.first, dataStart), end: span.end });
  yield cut(zeroes.subarray(0, size - dataEnd), dataEnd, span);
}

export const planQcow2 = async (options: PlanOptions): Promise<PlannedQcow2> => {
  const { volume, encoder, compression, by } = options;
  const packing = createPacking(volume.size);
  const isByMap = by === 'map' && compression === 'none';
  if (isByMap) planByMap(packing, volume);
  else await planByReading(packing, volume, encoder);
  const layout = layOut(packing, { virtualSize: volume.size, compression, tables: 'first' });
  const planned = { ...options, packing, layout, isByMap };
  return {
    size: layout.size,
    bytes: async function* whole(span) {
      for await (const piece of bytesOf(planned, span)) if (piece.length > 0) yield piece;
    },
  };
};
