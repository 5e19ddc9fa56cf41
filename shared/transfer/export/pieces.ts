// What becomes of an encoded piece: its clusters, one after the other. Pure.
import type { Encoded } from '#shared/transfer/export/encoder.ts';
import { clusterBytes, plainLength } from '#shared/transfer/export/qcow2/packing.ts';

export interface EncodedCluster {
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
