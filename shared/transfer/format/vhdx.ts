// Hyper-V disks: region table, metadata and block table, verified before qemu-img reads one.
import { TransferError } from '#shared/transfer/fault.ts';
import {
  type DiskHeader,
  type DiskReader,
  checkInside,
  corrupt,
  readExactly,
  toSafeNumber,
} from '#shared/transfer/format/disk.ts';

const kib64 = 64 * 1024;
const regionTableOffsets = [3 * kib64, 4 * kib64];
const headerBytes = 4096;
const maxTableEntries = 2047;
/** GUIDs as stored in the file. */
const guids = {
  metadataRegion: '06a27c8b90479a4bb8fe575f050f886e',
  blockTableRegion: '6677c22d23f600429d64115e9bfd4a08',
  fileParameters: '3767a1ca36fa434db3b633f0aa44e76b',
  virtualDiskSize: '2442a52f1bcd7648b2115dbed83bf4b8',
  logicalSectorSize: '1dbf41816fa90947ba47f233a8faab5f',
} as const;
const mapChunkEntries = 128 * 1024;
const mib = 1024 * 1024;
/** Payload block states whose data is in the file. */
const storedStates = new Set([6, 7]);

const crcTable = Uint32Array.from({ length: 256 }, (_, byte) => {
  let value = byte;
  for (let bit = 0; bit < 8; bit++) value = (value & 1) === 0 ? value >>> 1 : (value >>> 1) ^ 0x82f6_3b78;
  return value;
});

/** CRC-32C of a structure whose own checksum is at byte 4 and counts as zero. */
export const vhdxSum = (bytes: Buffer): number => {
  let sum = 0xffff_ffff;
  for (const [at, byte] of bytes.entries())
    sum = (crcTable[(sum ^ (at >= 4 && at < 8 ? 0 : byte)) & 0xff] ?? 0) ^ (sum >>> 8);
  return ~sum >>> 0;
};

const isSound = (bytes: Buffer, signature: string): boolean =>
  bytes.toString('latin1', 0, 4) === signature && bytes.readUInt32LE(4) === vhdxSum(bytes);

/** The newer one of the two headers is valid. Writes in a log are not in the disk yet. */
const refuseLog = async (reader: DiskReader): Promise<void> => {
  const headers = await Promise.all(
    [kib64, 2 * kib64].map((offset) => readExactly(reader, offset, headerBytes, 'vhdx header')),
  );
  const sound = headers.filter((header) => isSound(header, 'head'));
  const [newest] = sound.toSorted((a, b) => Number(b.readBigUInt64LE(8) - a.readBigUInt64LE(8)));
  if (newest === undefined) throw corrupt('both headers of the vhdx are broken');
  if (newest.subarray(48, 64).every((byte) => byte === 0)) return;
  throw corrupt(
    'the vhdx was not closed cleanly: its log (LogGuid) holds writes that are not in the disk yet; replay it with qemu-img check -r all, and publish that',
  );
};

interface Region {
  readonly offset: number;
  readonly length: number;
}

const regionsOf = (table: Buffer): ReadonlyMap<string, Region> => {
  const regions = new Map<string, Region>();
  const count = Math.min(table.readUInt32LE(8), maxTableEntries);
  for (let index = 0; index < count; index++) {
    const at = 16 + index * 32;
    const offset = toSafeNumber(table.readBigUInt64LE(at + 16), 'a region offset of the vhdx');
    regions.set(table.toString('hex', at, at + 16), { offset, length: table.readUInt32LE(at + 24) });
  }
  return regions;
};

const readRegions = async (reader: DiskReader): Promise<ReadonlyMap<string, Region>> => {
  for (const offset of regionTableOffsets) {
    const table = await readExactly(reader, offset, kib64, 'vhdx region table');
    if (isSound(table, 'regi')) return regionsOf(table);
  }
  throw corrupt('the vhdx has no valid region table');
};

interface Vhdx {
  readonly virtualSize: number;
  readonly blockSize: number;
  readonly sectorSize: number;
  readonly blockTable: Region;
}

const requireRegion = (regions: ReadonlyMap<string, Region>, guid: string, what: string): Region => {
  const region = regions.get(guid);
  if (region === undefined) throw corrupt(`the vhdx has no ${what} region`);
  return region;
};

/** Values of the metadata table by GUID. */
const readMetadata = async (
  reader: DiskReader,
  region: Region,
): Promise<(guid: string, bytes: number) => Promise<Buffer>> => {
  const table = await readExactly(reader, region.offset, kib64, 'vhdx metadata table');
  if (table.toString('latin1', 0, 8) !== 'metadata') throw corrupt('the vhdx has no metadata table');
  const count = Math.min(table.readUInt16LE(10), maxTableEntries);
  const offsets = new Map<string, number>();
  for (let index = 0; index < count; index++) {
    const at = 32 + index * 32;
    offsets.set(table.toString('hex', at, at + 16), table.readUInt32LE(at + 16));
  }
  return (guid, bytes) => {
    const offset = offsets.get(guid);
    if (offset === undefined) throw corrupt('the vhdx lacks a metadata item');
    return readExactly(reader, region.offset + offset, bytes, 'vhdx metadata');
  };
};

const readVhdx = async (reader: DiskReader): Promise<Vhdx> => {
  await refuseLog(reader);
  const regions = await readRegions(reader);
  const item = await readMetadata(reader, requireRegion(regions, guids.metadataRegion, 'metadata'));
  const parameters = await item(guids.fileParameters, 8);
  const blockSize = parameters.readUInt32LE(0);
  if ((parameters.readUInt32LE(4) & 2) !== 0) {
    throw new TransferError(
      'ExternalReference',
      'the vhdx is a difference to a parent disk; merge it and publish the full disk',
    );
  }
  const isPowerOfTwo = blockSize >= mib && blockSize <= 256 * mib && (blockSize & (blockSize - 1)) === 0;
  if (!isPowerOfTwo) throw corrupt(`the vhdx has blocks of ${blockSize} bytes`);
  const sectorSize = (await item(guids.logicalSectorSize, 4)).readUInt32LE(0);
  if (sectorSize !== 512 && sectorSize !== 4096) throw corrupt(`the vhdx has sectors of ${sectorSize} bytes`);
  const virtualSize = toSafeNumber((await item(guids.virtualDiskSize, 8)).readBigUInt64LE(0), 'the size of the vhdx');
  return {
    virtualSize,
    blockSize,
    sectorSize,
    blockTable: requireRegion(regions, guids.blockTableRegion, 'block table'),
  };
};

export const inspectVhdx = async (reader: DiskReader): Promise<DiskHeader> => {
  const vhdx = await readVhdx(reader);
  checkInside(reader, vhdx.blockTable.offset, vhdx.blockTable.length, 'the vhdx block table');
  return { format: 'vhdx', virtualSize: vhdx.virtualSize };
};

/** Verifies that every stored block is inside the file. */
export const verifyVhdx = async (reader: DiskReader): Promise<void> => {
  const { virtualSize, blockSize, sectorSize, blockTable } = await readVhdx(reader);
  // A sector bitmap entry follows the payload entries of each chunk: 2^23 sectors.
  const perChunk = (2 ** 23 * sectorSize) / blockSize;
  const blocks = Math.ceil(virtualSize / blockSize);
  const entries = blocks + Math.floor(Math.max(0, blocks - 1) / perChunk);
  if (entries * 8 > blockTable.length) throw corrupt('the vhdx has fewer blocks than its size needs');
  for (let first = 0; first < entries; first += mapChunkEntries) {
    const count = Math.min(mapChunkEntries, entries - first);
    const map = await readExactly(reader, blockTable.offset + first * 8, count * 8, 'vhdx block table');
    for (let index = 0; index < count; index++) {
      const isBitmap = (first + index + 1) % (perChunk + 1) === 0;
      const entry = map.readBigUInt64LE(index * 8);
      if (isBitmap || !storedStates.has(Number(entry & 7n))) continue;
      checkInside(reader, Number(entry >> 20n) * mib, blockSize, `block ${first + index} of the vhdx`);
    }
  }
};
