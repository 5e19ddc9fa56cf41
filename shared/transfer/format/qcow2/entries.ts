// Decodes the entries of L1 and L2 tables. Pure.
import { TransferError } from '#shared/transfer/fault.ts';
import { corrupt } from '#shared/transfer/format/disk.ts';
import type { Extent } from '#shared/transfer/format/qcow2/cluster-map.ts';
import type { Qcow2Header } from '#shared/transfer/format/qcow2/header.ts';
import type { References } from '#shared/transfer/format/qcow2/refcounts.ts';

const two32 = 2 ** 32;
/** Bits 9 to 55 of a table entry are an offset. */
const offsetHighMask = 0x00ff_ffff;
const offsetLowMask = 0xffff_fe00;
const compressedFlag = 0x4000_0000;
const zeroFlag = 1;
const subclusters = 32;

const offsetOf = (high: number, low: number): number => (high & offsetHighMask) * two32 + ((low & offsetLowMask) >>> 0);

/** Context for decoding an entry. */
export interface TableLayout {
  readonly header: Qcow2Header;
  /** Infinity until the end of a stream is known. */
  readonly fileSize: number;
  readonly entryBytes: 8 | 16;
  readonly entriesPerTable: number;
  /** Bits of a compressed entry's offset above the lowest 32. */
  readonly offsetHighBits: number;
  readonly references: Pick<References, 'refer'>;
}

export const layoutOf = (header: Qcow2Header, fileSize: number, references: TableLayout['references']): TableLayout => {
  const entryBytes = header.hasExtendedL2 ? 16 : 8;
  return {
    header,
    fileSize,
    entryBytes,
    entriesPerTable: header.clusterSize / entryBytes,
    offsetHighBits: 62 - (header.clusterBits - 8) - 32,
    references,
  };
};

/** Guest bytes that one L2 table maps. */
export const guestBytesPerTable = ({ header, entriesPerTable }: TableLayout): number =>
  entriesPerTable * header.clusterSize;

/** Only the guest-visible part of a cluster must exist: the file may end within the last one of the disk. */
const checkEnd = ({ fileSize }: TableLayout, host: number, length: number, guest: number): void => {
  if (host + length <= fileSize) return;
  const message = `the qcow2 cluster for guest offset ${guest} lies at ${host}, beyond the file's ${fileSize} bytes`;
  throw new TransferError('ImageTruncated', message);
};

const compressedExtent = (layout: TableLayout, high: number, low: number, guest: number): Extent => {
  const { offsetHighBits, fileSize, references } = layout;
  const host = (high & (2 ** offsetHighBits - 1)) * two32 + low;
  const sectors = ((high & 0x3fff_ffff) >>> offsetHighBits) + 1;
  checkEnd(layout, host, 1, guest);
  const stored = sectors * 512 - (host % 512);
  references.refer(host, stored);
  return { host, length: Math.min(stored, fileSize - host), guest, kind: 'compressed' };
};

const alignedOffset = ({ header, references }: TableLayout, high: number, low: number, guest: number): number => {
  const host = offsetOf(high, low);
  if (host % header.clusterSize !== 0)
    throw corrupt(`the qcow2 entry for guest offset ${guest} is not aligned to clusters`);
  if (host > 0) references.refer(host, header.clusterSize);
  return host;
};

const guestLength = ({ header }: TableLayout, guest: number, length: number): number =>
  Math.min(length, header.virtualSize - guest);

/** A plain cluster of an image without subclusters; `undefined` if it reads as zeroes. */
const plainExtent = (layout: TableLayout, high: number, low: number, guest: number): Extent | undefined => {
  const host = alignedOffset(layout, high, low, guest);
  if ((low & zeroFlag) !== 0) {
    if (layout.header.version === 2)
      throw corrupt('the qcow2 is of version 2 but has zero clusters, which were added in version 3');
    return undefined;
  }
  if (host === 0) return undefined;
  const length = guestLength(layout, guest, layout.header.clusterSize);
  checkEnd(layout, host, length, guest);
  return { host, length, guest, kind: 'plain' };
};

export type Add = (extent: Extent) => void;

/** The allocated subclusters of a cluster; the others read as zeroes. */
const addSubclusters = (layout: TableLayout, entry: DataView, guest: number, add: Add): void => {
  const host = alignedOffset(layout, entry.getUint32(0), entry.getUint32(4), guest);
  const zeroes = entry.getUint32(8);
  const allocated = entry.getUint32(12);
  if ((zeroes & allocated) !== 0)
    throw corrupt(`the qcow2 says that subclusters at guest offset ${guest} are zero and allocated at once`);
  if (allocated === 0) return;
  if (host === 0) throw corrupt(`the qcow2 has allocated subclusters at guest offset ${guest} without a place`);
  const size = layout.header.clusterSize / subclusters;
  for (let index = 0; index < subclusters; index++) {
    const at = guest + index * size;
    const length = guestLength(layout, at, size);
    if (((allocated >>> index) & 1) === 0 || length <= 0) continue;
    checkEnd(layout, host + index * size, length, at);
    add({ host: host + index * size, length, guest: at, kind: 'plain' });
  }
};

const addEntry = (layout: TableLayout, entry: DataView, guest: number, add: Add): void => {
  const high = entry.getUint32(0);
  const low = entry.getUint32(4);
  if ((high & compressedFlag) !== 0) return add(compressedExtent(layout, high, low, guest));
  if (layout.header.hasExtendedL2) return addSubclusters(layout, entry, guest, add);
  if (high === 0 && low === 0) return undefined;
  const extent = plainExtent(layout, high, low, guest);
  return extent === undefined ? undefined : add(extent);
};

/** Extents of one L2 table that starts at guest offset `firstGuest`. */
export const addTable = (layout: TableLayout, table: Buffer, firstGuest: number, add: Add): void => {
  const { entryBytes, entriesPerTable, header } = layout;
  for (let index = 0; index < entriesPerTable; index++) {
    const guest = firstGuest + index * header.clusterSize;
    if (guest >= header.virtualSize) return;
    addEntry(layout, new DataView(table.buffer, table.byteOffset + index * entryBytes, entryBytes), guest, add);
  }
};

/** Location of an L2 table, and the guest offset of its first entry. */
export interface TablePlace {
  readonly host: number;
  readonly firstGuest: number;
  /** In the L1 table. */
  readonly index: number;
}

export const placesOf = (layout: TableLayout, l1: Buffer): readonly TablePlace[] => {
  const { header, fileSize, references } = layout;
  const guestPerTable = guestBytesPerTable(layout);
  const places: TablePlace[] = [];
  for (let index = 0; index < header.l1Entries && index * guestPerTable < header.virtualSize; index++) {
    const host = offsetOf(l1.readUInt32BE(index * 8), l1.readUInt32BE(index * 8 + 4));
    if (host === 0) continue;
    if (host % header.clusterSize !== 0) throw corrupt(`L2 table ${index} of the qcow2 is not aligned to clusters`);
    if (host + header.clusterSize > fileSize) {
      throw new TransferError(
        'ImageTruncated',
        `L2 table ${index} of the qcow2 lies beyond the file's ${fileSize} bytes`,
      );
    }
    references.refer(host, header.clusterSize);
    places.push({ host, firstGuest: index * guestPerTable, index });
  }
  return places;
};
