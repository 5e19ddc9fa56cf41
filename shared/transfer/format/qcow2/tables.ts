// Reads L1 and L2 tables and verifies that everything they refer to is in the file. Pure except for the injected reads.
import { type DiskReader, readExactly } from '#shared/transfer/format/disk.ts';
import {
  type ClusterMap,
  type ClusterMapBuilder,
  createClusterMapBuilder,
} from '#shared/transfer/format/qcow2/cluster-map.ts';
import {
  type Add,
  type TableLayout,
  type TablePlace,
  addTable,
  layoutOf,
  placesOf,
} from '#shared/transfer/format/qcow2/entries.ts';
import type { Qcow2Header } from '#shared/transfer/format/qcow2/header.ts';
import { inOrder } from '#shared/transfer/format/qcow2/in-order.ts';
import { checkRefcounts, createReferences } from '#shared/transfer/format/qcow2/refcounts.ts';
import { checkSnapshots } from '#shared/transfer/format/qcow2/snapshots.ts';

/** Adjacent tables are read together, up to this many bytes. */
const batchBytes = 1024 * 1024;

const batchesOf = (places: readonly TablePlace[], clusterSize: number): readonly (readonly TablePlace[])[] => {
  const batches: TablePlace[][] = [];
  for (const place of places) {
    const batch = batches.at(-1);
    const isNext = batch?.at(-1)?.host === place.host - clusterSize;
    if (batch !== undefined && isNext && (batch.length + 1) * clusterSize <= batchBytes) batch.push(place);
    else batches.push([place]);
  }
  return batches;
};

const fill = async (layout: TableLayout, reader: DiskReader, builder: ClusterMapBuilder): Promise<boolean> => {
  const { header, references } = layout;
  const { clusterSize } = header;
  const l1 = await readExactly(reader, header.l1Offset, header.l1Entries * 8, 'qcow2 L1 table');
  references.refer(0, clusterSize);
  references.refer(header.l1Offset, l1.length);
  let fits = true;
  const add: Add = (extent) => {
    fits = builder.add(extent) && fits;
  };
  await inOrder(
    batchesOf(placesOf(layout, l1), clusterSize),
    (batch) => {
      const length = fits ? batch.length * clusterSize : 0;
      return readExactly(reader, batch[0]?.host ?? 0, length, 'qcow2 L2 table');
    },
    (batch, bytes) => {
      if (!fits) return;
      for (const [index, { firstGuest }] of batch.entries()) {
        addTable(layout, bytes.subarray(index * clusterSize, (index + 1) * clusterSize), firstGuest, add);
      }
    },
  );
  return fits;
};

/**
 * Every extent of the guest's disk, verified to be inside the file and counted by its refcounts. `undefined` if there are more than `limit`, if
 * the file is too large to count its uses, or if it has bitmaps, which only qemu reads. The reader must know its size. Throws TransferError:
 * ImageTruncated, ImageCorrupt.
 */
export const readClusterMap = async (
  header: Qcow2Header,
  reader: DiskReader,
  limit?: number,
): Promise<ClusterMap | undefined> => {
  const fileSize = reader.size ?? 0;
  await checkSnapshots(header, reader);
  const references = createReferences(fileSize, header.clusterSize);
  if (references === undefined || header.hasBitmaps) return undefined;
  const builder = createClusterMapBuilder(limit);
  if (!(await fill(layoutOf(header, fileSize, references), reader, builder))) return undefined;
  await checkRefcounts(header, reader, references);
  return builder.build();
};
