// The tables of a qcow2 version 3, computed from the lengths of its clusters, before or after its data. Pure.
import {
  type Packing,
  alignToCluster,
  clusterBytes,
  placeCluster,
  plainLength,
} from '#shared/transfer/export/qcow2/packing.ts';

const two32 = 2 ** 32;
const entriesPerTable = clusterBytes / 8;
/** Refcounts have 16 bits. */
const countsPerBlock = clusterBytes / 2;
const copiedFlag = 0x8000_0000;
const compressedFlag = 0x4000_0000;
/** Bits of a compressed entry's offset above the lowest 32: 62 - (clusterBits - 8) - 32. */
const offsetHighBits = 22;
const headerLength = 112;
const zstdFeature = 8;

export interface LayoutOptions {
  /** Bytes of the guest's disk: whole sectors. */
  readonly virtualSize: number;
  readonly compression: 'none' | 'zlib' | 'zstd';
  /** `first`: everything is known before the first byte of data. `last`: only header and L1 table, whose length is known, come before it. */
  readonly tables: 'first' | 'last';
}

export interface ExportLayout {
  /** Bytes of the whole file. */
  readonly size: number;
  /** Position of the first cluster of data. */
  readonly dataStart: number;
  /** Position after the last byte of data. */
  readonly dataEnd: number;
  /** Start of the data of L2 table `index`: after the clusters of the previous tables. */
  tableStart(index: number): number;
  /** A cluster of the file that contains no data. */
  tableCluster(position: number): Buffer;
}

/** Guest clusters that one L2 table maps. */
export const clustersPerTable = entriesPerTable;

/** Bytes of header and L1 table. */
export const headBytes = (virtualSize: number): number => clusterBytes + l1BytesOf(virtualSize);

const l1EntriesOf = (virtualSize: number): number => Math.ceil(virtualSize / (clusterBytes * entriesPerTable));
const l1BytesOf = (virtualSize: number): number => alignToCluster(l1EntriesOf(virtualSize) * 8);

const writeUInt64 = (target: Buffer, value: number, at: number): void => {
  target.writeUInt32BE(Math.floor(value / two32), at);
  target.writeUInt32BE(value % two32, at + 4);
};

const writeEntry = (table: Buffer, at: number, host: number, length: number): void => {
  if (length === plainLength) {
    writeUInt64(table, host, at);
    table.writeUInt32BE((table.readUInt32BE(at) | copiedFlag) >>> 0, at);
    return;
  }
  const moreSectors = Math.floor((host + length - 1) / 512) - Math.floor(host / 512);
  table.writeUInt32BE((compressedFlag | (moreSectors << offsetHighBits) | Math.floor(host / two32)) >>> 0, at);
  table.writeUInt32BE(host % two32, at + 4);
};

interface Placed {
  /** Of the data only, counted from its first byte. */
  readonly bytes: number;
  /** Start of the data of each L2 table. */
  readonly starts: Float64Array;
  /** Rank of each L2 table among the existing ones; -1 for tables without data. */
  readonly ranks: Int32Array;
  readonly tables: number;
  /** Number of guest clusters that use each cluster of the data. */
  readonly counts: Uint16Array;
}

const place = (packing: Packing, tables: number): Placed => {
  const starts = new Float64Array(tables);
  const ranks = new Int32Array(tables).fill(-1);
  const counts = new Uint16Array(packing.clusters + 1);
  let position = 0;
  let present = 0;
  for (let cluster = 0; cluster < packing.clusters; cluster++) {
    const table = Math.floor(cluster / entriesPerTable);
    if (cluster % entriesPerTable === 0) starts[table] = position;
    const length = packing.lengthOf(cluster);
    if (length === 0) continue;
    if (ranks[table] === -1) ranks[table] = present++;
    const { start, end } = placeCluster(position, length);
    for (let host = Math.floor(start / clusterBytes); host * clusterBytes < end; host++)
      counts[host] = (counts[host] ?? 0) + 1;
    position = end;
  }
  return { bytes: position, starts, ranks, tables: present, counts };
};

/** Number of clusters for refcount blocks and their table, which count themselves. */
const refcountClusters = (others: number) => {
  let blocks = 0;
  let table = 1;
  for (;;) {
    const needed = Math.ceil((others + blocks + table) / countsPerBlock);
    const neededTable = Math.ceil((needed * 8) / clusterBytes);
    if (needed === blocks && neededTable === table) return { blocks, table };
    blocks = needed;
    table = neededTable;
  }
};

/** The start of each part, in clusters. */
const arrange = (placed: Placed, { virtualSize, tables }: LayoutOptions) => {
  const l1 = l1BytesOf(virtualSize) / clusterBytes;
  const data = Math.ceil(placed.bytes / clusterBytes);
  const { blocks, table } = refcountClusters(1 + l1 + placed.tables + data);
  const parts = { l1, l2: placed.tables, blocks, table, data };
  const order =
    tables === 'first'
      ? (['l1', 'l2', 'blocks', 'table', 'data'] as const)
      : (['l1', 'data', 'l2', 'blocks', 'table'] as const);
  const starts = { l1: 0, l2: 0, blocks: 0, table: 0, data: 0 };
  let at = 1;
  for (const part of order) {
    starts[part] = at;
    at += parts[part];
  }
  return { parts, starts, total: at };
};

type Arranged = ReturnType<typeof arrange>;

const headerOf = ({ virtualSize, compression }: LayoutOptions, { starts, parts }: Arranged): Buffer => {
  const header = Buffer.alloc(clusterBytes);
  header.write('QFI\xfb', 0, 'latin1');
  header.writeUInt32BE(3, 4);
  header.writeUInt32BE(Math.log2(clusterBytes), 20);
  writeUInt64(header, virtualSize, 24);
  header.writeUInt32BE(l1EntriesOf(virtualSize), 36);
  writeUInt64(header, starts.l1 * clusterBytes, 40);
  writeUInt64(header, starts.table * clusterBytes, 48);
  header.writeUInt32BE(parts.table, 56);
  header.writeUInt32BE(4, 96);
  header.writeUInt32BE(headerLength, 100);
  if (compression === 'zstd') {
    header.writeUInt32BE(zstdFeature, 76);
    header.writeUInt8(1, 104);
  }
  return header;
};

type Maker = (index: number) => Buffer;

const l1Maker =
  (placed: Placed, { starts }: Arranged): Maker =>
  (index) => {
    const bytes = Buffer.alloc(clusterBytes);
    for (let entry = 0; entry < entriesPerTable; entry++) {
      const rank = placed.ranks[index * entriesPerTable + entry] ?? -1;
      if (rank !== -1) writeEntry(bytes, entry * 8, (starts.l2 + rank) * clusterBytes, plainLength);
    }
    return bytes;
  };

const l2Maker =
  (packing: Packing, placed: Placed, { starts }: Arranged): Maker =>
  (index) => {
    const table = placed.ranks.indexOf(index);
    const bytes = Buffer.alloc(clusterBytes);
    let position = starts.data * clusterBytes + (placed.starts[table] ?? 0);
    for (let entry = 0; entry < entriesPerTable; entry++) {
      const length = packing.lengthOf(table * entriesPerTable + entry);
      if (length === 0) continue;
      const { start, end } = placeCluster(position, length);
      writeEntry(bytes, entry * 8, start, length);
      position = end;
    }
    return bytes;
  };

const refcountBlockMaker = ({ counts }: Placed, { starts, parts, total }: Arranged): Maker => {
  const countOf = (cluster: number): number => {
    const inData = cluster - starts.data;
    if (inData >= 0 && inData < parts.data) return counts[inData] ?? 0;
    return cluster < total ? 1 : 0;
  };
  return (index) => {
    const bytes = Buffer.alloc(clusterBytes);
    for (let entry = 0; entry < countsPerBlock; entry++)
      bytes.writeUInt16BE(countOf(index * countsPerBlock + entry), entry * 2);
    return bytes;
  };
};

const refcountTableMaker =
  ({ starts, parts }: Arranged): Maker =>
  (index) => {
    const bytes = Buffer.alloc(clusterBytes);
    for (let entry = 0; entry < entriesPerTable && index * entriesPerTable + entry < parts.blocks; entry++)
      writeUInt64(bytes, (starts.blocks + index * entriesPerTable + entry) * clusterBytes, entry * 8);
    return bytes;
  };

/** The complete layout, once the length of each cluster is known. */
export const layOut = (packing: Packing, options: LayoutOptions): ExportLayout => {
  const placed = place(packing, Math.ceil(packing.clusters / entriesPerTable));
  const arranged = arrange(placed, options);
  const { starts, parts, total } = arranged;
  const dataStart = starts.data * clusterBytes;
  const makers = {
    l1: l1Maker(placed, arranged),
    l2: l2Maker(packing, placed, arranged),
    blocks: refcountBlockMaker(placed, arranged),
    table: refcountTableMaker(arranged),
  } as const;
  return {
    size: total * clusterBytes,
    dataStart,
    dataEnd: dataStart + placed.bytes,
    tableStart: (index) => dataStart + (placed.starts[index] ?? placed.bytes),
    tableCluster: (position) => {
      const cluster = position / clusterBytes;
      for (const part of ['l1', 'l2', 'blocks', 'table'] as const) {
        const index = cluster - starts[part];
        if (index >= 0 && index < parts[part]) return makers[part](index);
      }
      return headerOf(options, arranged);
    },
  };
};
