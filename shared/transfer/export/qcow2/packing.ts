// The length of each cluster of a guest's disk in the new qcow2; it determines all positions. Pure.
import type { Encoded } from '#shared/transfer/export/encoder.ts';

/** qemu's own default; the length of a compressed cluster fits 16 bits. */
export const clusterBytes = 64 * 1024;

/** A cluster that does not become smaller is stored uncompressed. */
export const plainLength = -1;
const plainMark = 0xffff;

export interface Packing {
  /** Clusters of the guest's disk. */
  readonly clusters: number;
  /** Bytes in the file: 0 for a cluster of zeroes, `plainLength` for an uncompressed one. */
  set(cluster: number, length: number): void;
  lengthOf(cluster: number): number;
}

/** Two bytes per cluster: 7 MB for 200 GiB. */
export const createPacking = (virtualSize: number): Packing => {
  const lengths = new Uint16Array(Math.ceil(virtualSize / clusterBytes));
  return {
    clusters: lengths.length,
    set: (cluster, length) => {
      lengths[cluster] = length === plainLength ? plainMark : length;
    },
    lengthOf: (cluster) => {
      const length = lengths[cluster] ?? 0;
      return length === plainMark ? plainLength : length;
    },
  };
};

export const alignToCluster = (position: number): number => Math.ceil(position / clusterBytes) * clusterBytes;

/** Start and end of a cluster after data that ends at `position`. Compressed clusters follow each other without padding. */
export const placeCluster = (position: number, length: number): { readonly start: number; readonly end: number } => {
  const start = length === plainLength ? alignToCluster(position) : position;
  return { start, end: start + (length === plainLength ? clusterBytes : length) };
};

/** The clusters of an encoded piece, one after the other. */
interface EncodedCluster {
  /** Index on the guest's disk. */
  readonly cluster: number;
  /** As in Packing. */
  readonly length: number;
  readonly bytes: Uint8Array;
}

/** Clusters that are not zero. */
export function* clustersOf({ offset, lengths, plain, packed }: Encoded): Generator<EncodedCluster, void, undefined> {
  const first = offset / clusterBytes;
  let at = 0;
  for (const [index, length] of lengths.entries()) {
    if (length === 0) continue;
    if (length === plainLength) {
      const bytes = plain.subarray(index * clusterBytes, (index + 1) * clusterBytes);
      yield { cluster: first + index, length, bytes };
      continue;
    }
    yield { cluster: first + index, length, bytes: packed.subarray(at, at + length) };
    at += length;
  }
}
