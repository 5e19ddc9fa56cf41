// Reads L1 and L2 tables and verifies that everything they refer to is in the file. Pure except for the injected reads.
import { TransferError } from '#shared/transfer/fault.ts';
import { corrupt, type DiskReader, readExactly } from '#shared/transfer/format/disk.ts';
import { type ClusterMap, type ClusterMapBuilder, createClusterMapBuilder } from './cluster-map.ts';
import { type Add, addTable, layoutOf, placesOf, type TableLayout, type TablePlace } from './entries.ts';
import { maxSnapshots, type Qcow2Header } from './header.ts';
import { inOrder } from './in-order.ts';
import { checkRefcounts, createReferences } from './refcounts.ts';

// The table of internal snapshots of a qcow2. They are not imported, but a file with an invalid table is not sound.

const entryBytes = 40;
/** Limits of qemu. */
const maxExtraBytes = 1024;
const maxTableBytes = 1024 * maxSnapshots;
/** Entries are small: one read covers many. */
const windowBytes = 256 * 1024;

/** Throws ImageCorrupt or ImageTruncated, with the number of the entry. */
const checkSnapshots = async (header: Qcow2Header, reader: DiskReader): Promise<void> => {
  const { snapshots, snapshotsOffset } = header;
  let window: { readonly at: number; readonly bytes: Buffer } = { at: snapshotsOffset, bytes: Buffer.alloc(0) };
  let at = snapshotsOffset;
  for (let index = 0; index < snapshots; index++) {
    if (at + entryBytes > window.at + window.bytes.length) {
      // The position of the next entry depends on the one before.
      window = { at, bytes: await reader.read(at, windowBytes) };
    }
    const entry = window.bytes.subarray(at - window.at, at - window.at + entryBytes);
    if (entry.length < entryBytes) {
      const where = `entry ${index} of the qcow2 snapshot table at ${snapshotsOffset}`;
      throw new TransferError('ImageTruncated', `${where} lies beyond the end of the file`);
    }
    const extra = entry.readUInt32BE(36);
    if (extra > maxExtraBytes) {
      const limit = `${maxExtraBytes} are allowed; remove them with qemu-img check -r all`;
      throw corrupt(`entry ${index} of the qcow2 snapshot table has ${extra} bytes of extra data; ${limit}`);
    }
    const length = entryBytes + extra + entry.readUInt16BE(12) + entry.readUInt16BE(14);
    at += Math.ceil(length / 8) * 8;
    if (at - snapshotsOffset > maxTableBytes) throw corrupt('the qcow2 snapshot table is larger than any real one');
  }
};

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
