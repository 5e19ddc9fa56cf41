// Hand-made qcow2 files: any cluster size, order and mix of clusters, such as used images have and qemu-img convert never creates.
import { deflateRawSync, zstdCompressSync } from 'node:zlib';
import { noise } from '#test/support/disk.ts';
import { qcow2Header } from '#test/support/qcow2.ts';

export type ClusterKind = 'hole' | 'zero' | 'zeroAllocated' | 'plain' | 'plainZeroes' | 'compressed';

export interface ImagePlan {
  readonly version: 2 | 3;
  readonly clusterBits: number;
  readonly compression: 'zlib' | 'zstd';
  readonly hasExtendedL2: boolean;
  /** Type of each cluster of the guest's disk. */
  readonly clusters: readonly ClusterKind[];
  /** Sectors by which the disk is shorter than its last cluster. */
  readonly shortSectors: number;
  /** Order of clusters and tables in the file: a number for each, lowest first. */
  readonly order: readonly number[];
  /** The L1 table comes first, as in files of qemu-img; otherwise last. */
  readonly isL1First?: boolean;
  /** Unused bytes between compressed clusters. */
  readonly gap: number;
}

interface Built {
  readonly file: Buffer;
  /** Offsets of the tables in the file, for tests that damage them. */
  readonly tables: readonly { readonly offset: number; readonly length: number }[];
}

const contentOf = (kind: ClusterKind, index: number, size: number): Buffer => {
  if (kind === 'plain') return noise(`plain${index}`, size);
  // Half noise, half text, so that it is compressible, and different each time.
  const half = noise(`packed${index}`, size / 2);
  return kind === 'compressed'
    ? Buffer.concat([half, Buffer.alloc(size / 2, `cluster ${index} `)])
    : Buffer.alloc(size);
};

const pack = (bytes: Buffer, compression: ImagePlan['compression']): Buffer =>
  compression === 'zlib' ? deflateRawSync(bytes, { windowBits: 12 }) : zstdCompressSync(bytes);

const isAllocated = (kind: ClusterKind): boolean => kind !== 'hole' && kind !== 'zero';

/** Entry of a plain, zero or missing cluster. */
const plainEntry = (plan: ImagePlan, kind: ClusterKind, host: number): bigint => {
  const copied = isAllocated(kind) ? 1n << 63n : 0n;
  const zero = !plan.hasExtendedL2 && (kind === 'zero' || kind === 'zeroAllocated') ? 1n : 0n;
  return copied | BigInt(host) | zero;
};

const compressedEntry = (plan: ImagePlan, host: number, length: number): bigint => {
  const sectors = Math.floor((host + length - 1) / 512) - Math.floor(host / 512);
  return (1n << 62n) | BigInt(host) | (BigInt(sectors) << BigInt(62 - (plan.clusterBits - 8)));
};

/** Allocation bits in the low half, zero bits in the high half. */
const subclusterBits = (kind: ClusterKind): bigint => {
  if (kind === 'plain' || kind === 'plainZeroes') return 0xffff_ffffn;
  return kind === 'zero' || kind === 'zeroAllocated' ? 0xffff_ffffn << 32n : 0n;
};

interface Part {
  readonly offset: number;
  readonly bytes: Buffer;
  readonly isPacked: boolean;
}

/** Content of the file: offset and bytes, one after the other. */
const createLayout = (clusterSize: number, gap: number) => {
  const parts: Part[] = [];
  let end = clusterSize;
  return {
    parts,
    place: (bytes: Buffer, alignment: number): number => {
      const offset = Math.ceil(end / alignment) * alignment;
      parts.push({ offset, bytes, isPacked: alignment === 1 });
      end = offset + bytes.length + (alignment === 1 ? gap : 0);
      return offset;
    },
    clusters: () => Math.ceil(end / clusterSize),
    file: (): Buffer => {
      const file = Buffer.alloc(Math.ceil(end / clusterSize) * clusterSize);
      for (const { offset, bytes } of parts) bytes.copy(file, offset);
      return file;
    },
  };
};

/** Number of uses of each cluster of the file: one for its own content, one for each compressed cluster that overlaps it. */
const countUses = (parts: readonly Part[], clusterSize: number): number[] => {
  const uses: number[] = [];
  const use = (from: number, to: number) => {
    for (let at = Math.floor(from / clusterSize); at <= Math.floor((to - 1) / clusterSize); at++)
      uses[at] = (uses[at] ?? 0) + 1;
  };
  use(0, clusterSize);
  for (const { offset, bytes, isPacked } of parts)
    use(offset, isPacked ? Math.ceil((offset + bytes.length) / 512) * 512 : offset + bytes.length);
  return uses;
};

/** Refcounts of 16 bits: the blocks, and the table that refers to them; both count themselves. */
const placeRefcounts = (layout: ReturnType<typeof createLayout>, clusterSize: number) => {
  const perBlock = clusterSize / 2;
  const clusters = layout.clusters();
  const blocks = Array.from({ length: Math.ceil((clusters + 64) / perBlock) + 1 }, () => Buffer.alloc(clusterSize));
  const table = Buffer.alloc(Math.ceil((blocks.length * 8) / clusterSize) * clusterSize);
  for (const [index, block] of blocks.entries())
    table.writeBigUInt64BE(BigInt(layout.place(block, clusterSize)), index * 8);
  const offset = layout.place(table, clusterSize);
  for (const [cluster, count] of countUses(layout.parts, clusterSize).entries()) {
    blocks[Math.floor(cluster / perBlock)]?.writeUInt16BE(count ?? 0, (cluster % perBlock) * 2);
  }
  return { offset, clusters: table.length / clusterSize };
};

/** The file and the positions of its tables. */
export const buildQcow2 = (plan: ImagePlan): Built => {
  const clusterSize = 2 ** plan.clusterBits;
  const entryBytes = plan.hasExtendedL2 ? 16 : 8;
  const perTable = clusterSize / entryBytes;
  const tableCount = Math.ceil(plan.clusters.length / perTable);
  const layout = createLayout(clusterSize, plan.gap);
  const tables = Array.from({ length: tableCount }, () => Buffer.alloc(clusterSize));
  const l1 = Buffer.alloc(tableCount * 8);

  const placeCluster = (kind: ClusterKind, index: number): void => {
    const entry = tables[Math.floor(index / perTable)]?.subarray((index % perTable) * entryBytes) ?? Buffer.alloc(0);
    if (kind === 'compressed') {
      const packed = pack(contentOf(kind, index, clusterSize), plan.compression);
      const host = layout.place(packed, 1);
      entry.writeBigUInt64BE(compressedEntry(plan, host, packed.length));
      return;
    }
    const host = isAllocated(kind) ? layout.place(contentOf(kind, index, clusterSize), clusterSize) : 0;
    entry.writeBigUInt64BE(plainEntry(plan, kind, host));
    if (plan.hasExtendedL2) entry.writeBigUInt64BE(subclusterBits(kind), 8);
  };
  const place = (): number => layout.place(l1, clusterSize);
  const firstOffset = plan.isL1First === true ? place() : undefined;
  const steps = [
    ...plan.clusters.map((kind, index) => () => placeCluster(kind, index)),
    ...tables.map(
      (table, index) => () => l1.writeBigUInt64BE((1n << 63n) | BigInt(layout.place(table, clusterSize)), index * 8),
    ),
  ];
  const order = steps.map((step, index) => ({ step, rank: plan.order[index % plan.order.length] ?? 0 }));
  for (const { step } of order.sort((a, b) => a.rank - b.rank)) step();

  const l1Offset = firstOffset ?? place();
  const refcounts = placeRefcounts(layout, clusterSize);
  const size = BigInt(plan.clusters.length * clusterSize - plan.shortSectors * 512);
  const file = layout.file();
  const incompatible = (plan.compression === 'zstd' ? 8n : 0n) | (plan.hasExtendedL2 ? 16n : 0n);
  const header = qcow2Header({
    version: plan.version,
    clusterBits: plan.clusterBits,
    size,
    l1Entries: tableCount,
    l1Offset: BigInt(l1Offset),
    refcountOffset: BigInt(refcounts.offset),
    refcountClusters: refcounts.clusters,
    incompatible,
    compression: plan.compression === 'zstd' ? 1 : 0,
  });
  header.copy(file, 0, 0, Math.min(112, clusterSize));
  const places = layout.parts.filter(({ bytes }) => bytes === l1 || tables.some((table) => table === bytes));
  return { file, tables: places.map(({ offset, bytes }) => ({ offset, length: bytes.length })) };
};
