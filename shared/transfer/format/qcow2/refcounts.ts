// Verifies that no cluster of the file is used more often than its refcount: two uses of one cluster may have overwritten each other.
import { TransferError } from '#shared/transfer/fault.ts';
import { type DiskReader, corrupt, readExactly } from '#shared/transfer/format/disk.ts';
import { inOrder } from '#shared/transfer/format/qcow2/in-order.ts';
import type { Qcow2Header } from '#shared/transfer/format/qcow2/header.ts';

/** Number of uses of each cluster of the file, by the guest's disk and its tables. */
export interface References {
  /** Adds a use of these bytes of the file. */
  refer(host: number, length: number): void;
  /** Uses of a cluster. */
  of(cluster: number): number;
  readonly clusters: number;
}

/** Of as many or more the rest is counted apart: only clusters that hold hundreds of small compressed ones have that many. */
const mostCounted = 0xff;
/** One byte each: a file of 4 TiB in clusters of 64 KiB. */
export const maxFileClusters = 64 * 1024 * 1024;

/** `undefined` for a file with more clusters than the memory limit allows. */
export const createReferences = (fileSize: number, clusterSize: number): References | undefined => {
  const clusters = Math.ceil(fileSize / clusterSize);
  if (clusters > maxFileClusters) return undefined;
  const counts = new Uint8Array(clusters);
  const more = new Map<number, number>();
  return {
    clusters,
    of: (cluster) => (counts[cluster] ?? 0) + (more.get(cluster) ?? 0),
    refer: (host, length) => {
      const last = Math.min(clusters - 1, Math.floor((host + length - 1) / clusterSize));
      for (let cluster = Math.floor(host / clusterSize); cluster <= last; cluster++) {
        const count = counts[cluster] ?? 0;
        if (count < mostCounted) counts[cluster] = count + 1;
        else more.set(cluster, (more.get(cluster) ?? 0) + 1);
      }
    },
  };
};

/** Reads one refcount of 2^order bits out of a block. */
const refcountReader = (block: Buffer, order: number): ((index: number) => number) => {
  if (order < 3) {
    const bits = 2 ** order;
    const mask = 2 ** bits - 1;
    return (index) => ((block[Math.floor((index * bits) / 8)] ?? 0) >> ((index * bits) % 8)) & mask;
  }
  const bytes = 2 ** (order - 3);
  if (bytes === 8) return (index) => Number(block.readBigUInt64BE(index * 8));
  return (index) => block.readUIntBE(index * bytes, bytes);
};

const clustersPerBlock = ({ clusterSize, refcountOrder }: Qcow2Header): number =>
  (clusterSize * 8) / 2 ** refcountOrder;

const offsetsIn = (table: Buffer): readonly number[] =>
  Array.from({ length: table.length / 8 }, (_, index) =>
    Number(table.readBigUInt64BE(index * 8) & 0xffff_ffff_ffff_fe00n),
  );

/** Offset of each block with refcounts of clusters of the file; 0 if there is none. Table and blocks are uses themselves. */
const readTable = async (
  header: Qcow2Header,
  reader: DiskReader,
  references: References,
): Promise<readonly number[]> => {
  const { clusterSize, refcountTableOffset, refcountTableClusters } = header;
  const needed = Math.ceil(references.clusters / clustersPerBlock(header));
  const present = Math.min(needed, (refcountTableClusters * clusterSize) / 8);
  const table = await readExactly(reader, refcountTableOffset, present * 8, 'qcow2 refcount table');
  references.refer(refcountTableOffset, refcountTableClusters * clusterSize);
  const known = offsetsIn(table);
  const offsets = Array.from({ length: needed }, (_, index) => known[index] ?? 0);
  for (const offset of offsets) {
    if (offset % clusterSize !== 0) throw corrupt('a refcount block of the qcow2 is not aligned to clusters');
    if (offset > 0) references.refer(offset, clusterSize);
  }
  return offsets;
};

/** Throws ImageCorrupt or ImageTruncated. */
export const checkRefcounts = async (
  header: Qcow2Header,
  reader: DiskReader,
  references: References,
): Promise<void> => {
  const { clusterSize, refcountOrder } = header;
  const perBlock = clustersPerBlock(header);
  const offsets = await readTable(header, reader, references);
  const empty = Buffer.alloc(clusterSize);
  const check = (block: Buffer, first: number): void => {
    const refcount = refcountReader(block, refcountOrder);
    for (let index = 0; index < perBlock && first + index < references.clusters; index++) {
      const uses = references.of(first + index);
      if (uses <= refcount(index)) continue;
      throw corrupt(
        `cluster ${first + index} of the qcow2 is used ${uses} times but counted ${refcount(index)} times; repair it with qemu-img check -r all`,
      );
    }
  };
  await inOrder(
    [...offsets.entries()],
    ([, offset]) =>
      offset === 0 ? Promise.resolve(empty) : readExactly(reader, offset, clusterSize, 'qcow2 refcount block'),
    ([index], block) => check(block, index * perBlock),
  );
};

/** The start of the last cluster that the file uses, by the block with the last refcounts; `undefined`: the block has none. */
const lastUsed = (header: Qcow2Header, block: Buffer, blockIndex: number): number | undefined => {
  const refcount = refcountReader(block, header.refcountOrder);
  let index = clustersPerBlock(header) - 1;
  while (index >= 0 && refcount(index) === 0) index--;
  return index < 0 ? undefined : (blockIndex * clustersPerBlock(header) + index) * header.clusterSize;
};

const truncated = ({ clusterSize }: Qcow2Header, last: number, size: number): TransferError =>
  new TransferError(
    'ImageTruncated',
    `the qcow2 uses ${last + clusterSize} bytes of a file that ends after ${size}: it is truncated; publish the whole file`,
  );

/**
 * Verifies by at most two reads that the last used cluster starts inside the file, the only check for a truncated file that does not read all
 * its tables. Throws ImageTruncated.
 */
export const checkEnd = async (header: Qcow2Header, reader: DiskReader): Promise<void> => {
  const { clusterSize, refcountTableOffset, refcountTableClusters } = header;
  const table = await readExactly(
    reader,
    refcountTableOffset,
    refcountTableClusters * clusterSize,
    'qcow2 refcount table',
  );
  const offsets = offsetsIn(table);
  const lastBlock = offsets.findLastIndex((offset) => offset > 0);
  if (lastBlock < 0) return;
  const block = await readExactly(reader, offsets[lastBlock] ?? 0, clusterSize, 'qcow2 refcount block');
  const last = lastUsed(header, block, lastBlock);
  if (last !== undefined && reader.size !== undefined && last >= reader.size)
    throw truncated(header, last, reader.size);
};

/** Bytes of the file that are kept while it passes. */
interface Kept {
  readonly offset: number;
  readonly bytes: Buffer;
  filled: number;
}

const keeping = (offset: number, length: number): Kept => ({ offset, bytes: Buffer.alloc(length), filled: 0 });

/** Whether all of it has passed. `at`: the position of `chunk` in the file. */
const keep = (kept: Kept, chunk: Buffer, at: number): boolean => {
  const from = kept.offset + kept.filled - at;
  if (from >= 0 && from < chunk.length) kept.filled += chunk.copy(kept.bytes, kept.filled, from);
  return kept.filled === kept.bytes.length;
};

/**
 * The bytes of a file of `size` bytes, which is checked like by `checkEnd` while it passes: throws ImageTruncated before its last bytes. The first chunk has
 * at least the header. A file whose last refcounts come before the table that refers to them, and not in the first chunk, is not judged: qemu writes
 * none.
 */
export async function* untilTruncated(
  header: Qcow2Header,
  size: number,
  chunks: AsyncIterable<Buffer>,
): AsyncGenerator<Buffer, void, undefined> {
  const { clusterSize, refcountTableOffset, refcountTableClusters } = header;
  const inside = (offset: number, length: number): Kept => {
    if (offset + length > size) throw truncated(header, offset + length - clusterSize, size);
    return keeping(offset, length);
  };
  const table = inside(refcountTableOffset, refcountTableClusters * clusterSize);
  let block: Kept | undefined;
  let blockIndex = -1;
  let head: Buffer | undefined;
  let at = 0;
  for await (const chunk of chunks) {
    head ??= chunk;
    if (blockIndex < 0 && keep(table, chunk, at)) {
      const offsets = offsetsIn(table.bytes);
      blockIndex = offsets.findLastIndex((offset) => offset > 0);
      if (blockIndex >= 0) {
        block = inside(offsets[blockIndex] ?? 0, clusterSize);
        keep(block, head, 0);
      }
    }
    if (block !== undefined && keep(block, chunk, at)) {
      const last = lastUsed(header, block.bytes, blockIndex);
      if (last !== undefined && last >= size) throw truncated(header, last, size);
      block = undefined;
    }
    yield chunk;
    at += chunk.length;
  }
}
