// The qcow2 header: parsed, checked against limits, and rejected by field name if reading the file would be wrong or unsafe.
import { TransferError } from '#shared/transfer/fault.ts';
import { type DiskReader, checkInside, corrupt, toSafeNumber } from '#shared/transfer/format/disk.ts';
import { readExtensions } from '#shared/transfer/format/qcow2/extensions.ts';

/** Limit of qemu. */
export const maxSnapshots = 65_536;

export interface Qcow2Header {
  readonly version: 2 | 3;
  readonly clusterBits: number;
  /** Bytes of one cluster. */
  readonly clusterSize: number;
  readonly virtualSize: number;
  readonly l1Entries: number;
  readonly l1Offset: number;
  readonly refcountTableOffset: number;
  readonly refcountTableClusters: number;
  readonly snapshots: number;
  readonly snapshotsOffset: number;
  /** Bytes before the first extension. */
  readonly headerLength: number;
  /** It has valid bitmaps, which only qemu can read. */
  readonly hasBitmaps: boolean;
  /** A refcount has 2^order bits. */
  readonly refcountOrder: number;
  readonly compression: 'zlib' | 'zstd';
  /** L2 entries have 128 bits: 32 subclusters each. */
  readonly hasExtendedL2: boolean;
}

const magic = 0x5146_49fb;
const v2HeaderBytes = 72;
const v3HeaderBytes = 104;
const maxBackingNameBytes = 1023;
/** Limits of qemu: 32 MiB of L1, 8 MiB of refcount table. */
const maxL1Bytes = 32 * 1024 * 1024;
const maxRefcountTableBytes = 8 * 1024 * 1024;

const incompatible = { dirty: 1n, corrupt: 2n, dataFile: 4n, compression: 8n, extendedL2: 16n } as const;
const knownIncompatible = 31n;
const autoclear = { bitmaps: 1n, rawDataFile: 2n } as const;
/** 32 subclusters of a sector each. */
const minExtendedClusterBits = 14;

const refuseReferences = (head: Buffer, features: bigint): void => {
  const backingOffset = head.readBigUInt64BE(8);
  const backingLength = head.readUInt32BE(16);
  if (backingOffset !== 0n) {
    const start = Number(backingOffset);
    const name = head.subarray(start, start + Math.min(backingLength, maxBackingNameBytes)).toString('latin1');
    const shown = name.replace(/[^\x20-\x7e]/g, '?').slice(0, 200);
    throw new TransferError(
      'ExternalReference',
      `the qcow2 has a backing file ("${shown}"); flatten it with qemu-img convert and publish that`,
    );
  }
  if ((features & incompatible.dataFile) !== 0n) {
    throw new TransferError(
      'ExternalReference',
      'the qcow2 stores its data in an external data file; publish one without',
    );
  }
};

const refuseState = (head: Buffer, features: bigint): void => {
  const encryption = head.readUInt32BE(32);
  if (encryption !== 0) {
    const method = encryption === 2 ? 'LUKS' : encryption === 1 ? 'AES' : `method ${encryption}`;
    throw new TransferError('ImageEncrypted', `the qcow2 is encrypted (${method}); publish it decrypted`);
  }
  if ((features & incompatible.corrupt) !== 0n)
    throw corrupt('the qcow2 is marked corrupt; repair it with qemu-img check -r all');
  if ((features & incompatible.dirty) !== 0n) {
    throw corrupt('the qcow2 is marked dirty: it was not closed properly; repair it with qemu-img check -r all');
  }
  if (head.readUInt32BE(4) === 3 && (head.readBigUInt64BE(88) & autoclear.rawDataFile) !== 0n)
    throw corrupt('the qcow2 says that its external data file is raw (autoclear bit 1), but it has no data file');
  if ((features & ~knownIncompatible) !== 0n) {
    const bits = (features & ~knownIncompatible).toString(16);
    throw new TransferError(
      'UnsupportedFormat',
      `the qcow2 needs incompatible features that are not known (0x${bits})`,
    );
  }
};

const compressionOf = (head: Buffer, features: bigint, headerLength: number): 'zlib' | 'zstd' => {
  const type = headerLength > v3HeaderBytes ? head.readUInt8(104) : 0;
  if (((features & incompatible.compression) !== 0n) !== (type !== 0)) {
    throw corrupt(`the qcow2 says compression type ${type} but its feature bit says otherwise`);
  }
  if (type > 1)
    throw new TransferError(
      'UnsupportedFormat',
      `the qcow2 has compression type ${type}; zlib (0) and zstd (1) are known`,
    );
  return type === 1 ? 'zstd' : 'zlib';
};

const versionOf = (head: Buffer): 2 | 3 => {
  if (head.readUInt32BE(0) !== magic)
    throw new TransferError('UnsupportedFormat', 'the file has no magic number of a qcow2');
  const version = head.readUInt32BE(4);
  if (version === 2 || version === 3) return version;
  throw new TransferError('UnsupportedFormat', `the file is qcow version ${version}; versions 2 and 3 are known`);
};

/** Length of the header in the file: fixed for version 2, recorded in the header itself for version 3. */
const headerLengthOf = (head: Buffer, version: 2 | 3, clusterSize: number): number => {
  if (version === 2) return v2HeaderBytes;
  const length = head.readUInt32BE(100);
  if (length < v3HeaderBytes || length % 8 !== 0 || length > clusterSize)
    throw corrupt(`the qcow2 header says it has ${length} bytes`);
  return length;
};

const checkPlaces = ({
  clusterSize,
  l1Entries,
  l1Offset,
  refcountTableOffset,
  snapshots,
  snapshotsOffset,
}: Qcow2Header): void => {
  const places = { L1: l1Offset, refcount: refcountTableOffset, snapshot: snapshotsOffset };
  for (const [table, offset] of Object.entries(places))
    if (offset % clusterSize !== 0) throw corrupt(`the qcow2 ${table} table at ${offset} is not aligned to clusters`);
  if (l1Entries > 0 && l1Offset === 0) throw corrupt('the qcow2 has no L1 table');
  if (refcountTableOffset === 0) throw corrupt('the qcow2 has no refcount table');
  if (snapshots > 0 && snapshotsOffset === 0) throw corrupt('the qcow2 has no snapshot table');
};

const checkTables = (header: Qcow2Header): void => {
  if (header.hasExtendedL2 && header.clusterBits < minExtendedClusterBits)
    throw corrupt(`the qcow2 has extended L2 entries for clusters of ${header.clusterSize} bytes; 16384 are the least`);
  if (header.virtualSize % 512 !== 0)
    throw corrupt(`the qcow2 has a disk of ${header.virtualSize} bytes, which is not a whole number of sectors`);
  const { clusterSize, l1Entries } = header;
  const guestPerL1 = (clusterSize / (header.hasExtendedL2 ? 16 : 8)) * clusterSize;
  if (l1Entries * 8 > maxL1Bytes) throw corrupt(`the qcow2 L1 table has ${l1Entries} entries, more than any real disk`);
  if (l1Entries < Math.ceil(header.virtualSize / guestPerL1)) {
    throw corrupt(`the qcow2 L1 table has ${l1Entries} entries, too few for ${header.virtualSize} bytes`);
  }
  if (header.refcountTableClusters * clusterSize > maxRefcountTableBytes) {
    throw corrupt(`the qcow2 refcount table has ${header.refcountTableClusters} clusters, more than any real disk`);
  }
  if (header.refcountTableClusters === 0) throw corrupt('the qcow2 has no refcount table');
  if (header.snapshots > maxSnapshots) throw corrupt(`the qcow2 says it holds ${header.snapshots} snapshots`);
  checkPlaces(header);
};

const refcountOrderOf = (head: Buffer, version: 2 | 3): number => {
  const order = version === 3 ? head.readUInt32BE(96) : 4;
  if (order > 6) throw corrupt(`the qcow2 refcount order is ${order}; at most 6 is defined`);
  return order;
};

const clusterBitsOf = (head: Buffer): number => {
  const bits = head.readUInt32BE(20);
  if (bits < 9 || bits > 21) throw corrupt(`the qcow2 has clusters of 2^${bits} bytes; 2^9 to 2^21 are defined`);
  return bits;
};

/** Pure: the header from the first bytes of a file (one cluster or 4 KiB are enough). Throws TransferError. */
export const parseQcow2Header = (head: Buffer): Qcow2Header => {
  const version = head.length < v2HeaderBytes ? 2 : versionOf(head);
  if (head.length < (version === 2 ? v2HeaderBytes : v3HeaderBytes)) {
    throw new TransferError('ImageTruncated', `the file ends inside its qcow2 header: it has ${head.length} bytes`);
  }
  const features = version === 3 ? head.readBigUInt64BE(72) : 0n;
  refuseReferences(head, features);
  refuseState(head, features);
  const clusterBits = clusterBitsOf(head);
  const headerLength = headerLengthOf(head, version, 2 ** clusterBits);
  const header: Qcow2Header = {
    version,
    clusterBits,
    clusterSize: 2 ** clusterBits,
    virtualSize: toSafeNumber(head.readBigUInt64BE(24), 'the virtual size of the qcow2'),
    l1Entries: head.readUInt32BE(36),
    l1Offset: toSafeNumber(head.readBigUInt64BE(40), 'the L1 offset of the qcow2'),
    refcountTableOffset: toSafeNumber(head.readBigUInt64BE(48), 'the refcount table offset of the qcow2'),
    refcountTableClusters: head.readUInt32BE(56),
    snapshots: head.readUInt32BE(60),
    snapshotsOffset: toSafeNumber(head.readBigUInt64BE(64), 'the snapshot table offset of the qcow2'),
    headerLength,
    hasBitmaps: version === 3 && (head.readBigUInt64BE(88) & autoclear.bitmaps) !== 0n,
    refcountOrder: refcountOrderOf(head, version),
    compression: compressionOf(head, features, headerLength),
    hasExtendedL2: (features & incompatible.extendedL2) !== 0n,
  };
  checkTables(header);
  return header;
};

/** The header of a file; its tables are verified to be inside the file if the size of the file is known. */
export const readQcow2Header = async (reader: DiskReader): Promise<Qcow2Header> => {
  const header = parseQcow2Header(await reader.read(0, 4096));
  checkInside(reader, header.l1Offset, header.l1Entries * 8, 'the qcow2 L1 table');
  checkInside(
    reader,
    header.refcountTableOffset,
    header.refcountTableClusters * header.clusterSize,
    'the qcow2 refcount table',
  );
  checkInside(reader, header.snapshotsOffset, header.snapshots * 40, 'the qcow2 snapshot table');
  return { ...header, hasBitmaps: await readExtensions(header, reader) };
};
