// Virtual PC and Azure disks: the dynamic type starts with a footer, the fixed type is a raw disk with a footer at its end.
import { TransferError } from '#shared/transfer/fault.ts';
import {
  type DiskHeader,
  type DiskReader,
  checkInside,
  corrupt,
  readExactly,
  toSafeNumber,
} from '#shared/transfer/format/disk.ts';

export const vhdFooterBytes = 512;
const dynamicHeaderBytes = 1024;
const types = { fixed: 2, dynamic: 3, difference: 4 } as const;
const unusedBlock = 0xffff_ffff;
const mapChunkEntries = 256 * 1024;

interface Footer {
  readonly type: number;
  readonly currentSize: number;
  readonly headerOffset: bigint;
}

/** One's complement of the sum of all bytes except for the checksum itself. */
const hasValidSum = (block: Buffer, at: number): boolean => {
  let sum = 0;
  for (const [index, byte] of block.entries()) if (index < at || index >= at + 4) sum += byte;
  return block.readUInt32BE(at) === ~sum >>> 0;
};

/** A footer with valid magic and checksum; `undefined` for any other 512 bytes. */
const parseFooter = (block: Buffer): Footer | undefined => {
  if (block.length !== vhdFooterBytes || block.toString('latin1', 0, 8) !== 'conectix' || !hasValidSum(block, 64))
    return undefined;
  return {
    type: block.readUInt32BE(60),
    currentSize: toSafeNumber(block.readBigUInt64BE(48), 'the size of the vhd'),
    headerOffset: block.readBigUInt64BE(16),
  };
};

/** The guest's bytes in a file of `size` bytes that ends with `tail`, if it is a fixed vhd. */
export const fixedVhdSize = (tail: Buffer, size: number): number | undefined => {
  const footer = parseFooter(tail.subarray(-vhdFooterBytes));
  if (footer?.type !== types.fixed || footer.currentSize !== size - vhdFooterBytes) return undefined;
  return footer.currentSize;
};

interface DynamicVhd {
  readonly virtualSize: number;
  readonly mapOffset: number;
  readonly entries: number;
  readonly blockSize: number;
}

const readDynamic = async (reader: DiskReader): Promise<DynamicVhd> => {
  const footer = parseFooter(await readExactly(reader, 0, vhdFooterBytes, 'vhd footer'));
  if (footer === undefined) throw corrupt('the checksum of the vhd footer is wrong');
  if (footer.type === types.difference) {
    throw new TransferError(
      'ExternalReference',
      'the vhd is a difference to a parent disk; merge it and publish the full disk',
    );
  }
  if (footer.type !== types.dynamic)
    throw new TransferError(
      'UnsupportedFormat',
      `the vhd has disk type ${footer.type}; dynamic (3) and fixed (2) are known`,
    );
  const at = toSafeNumber(footer.headerOffset, 'the header offset of the vhd');
  const header = await readExactly(reader, at, dynamicHeaderBytes, 'vhd dynamic header');
  if (header.toString('latin1', 0, 8) !== 'cxsparse' || !hasValidSum(header, 36))
    throw corrupt('the dynamic header of the vhd is broken');
  return {
    virtualSize: footer.currentSize,
    mapOffset: toSafeNumber(header.readBigUInt64BE(16), 'the block table offset of the vhd'),
    entries: header.readUInt32BE(28),
    blockSize: header.readUInt32BE(32),
  };
};

const checkGeometry = (vhd: DynamicVhd): void => {
  const isPowerOfTwo = vhd.blockSize >= 512 && (vhd.blockSize & (vhd.blockSize - 1)) === 0;
  if (!isPowerOfTwo) throw corrupt(`the vhd has blocks of ${vhd.blockSize} bytes`);
  if (vhd.entries * vhd.blockSize < vhd.virtualSize) throw corrupt('the vhd has fewer blocks than its size needs');
};

export const inspectVhd = async (reader: DiskReader): Promise<DiskHeader> => {
  const vhd = await readDynamic(reader);
  checkGeometry(vhd);
  checkInside(reader, vhd.mapOffset, vhd.entries * 4, 'the vhd block table');
  return { format: 'vhd', virtualSize: vhd.virtualSize };
};

/** Verifies that every stored block is inside the file (qemu-img does not). */
export const verifyVhd = async (reader: DiskReader): Promise<void> => {
  const { mapOffset, entries, blockSize } = await readDynamic(reader);
  // A bitmap of one bit per sector, in whole sectors, precedes each block.
  const stored = Math.ceil(blockSize / 512 / 8 / 512) * 512 + blockSize;
  for (let first = 0; first < entries; first += mapChunkEntries) {
    const count = Math.min(mapChunkEntries, entries - first);
    const map = await readExactly(reader, mapOffset + first * 4, count * 4, 'vhd block table');
    for (let index = 0; index < count; index++) {
      const sector = map.readUInt32BE(index * 4);
      if (sector !== unusedBlock) checkInside(reader, sector * 512, stored, `block ${first + index} of the vhd`);
    }
  }
};
