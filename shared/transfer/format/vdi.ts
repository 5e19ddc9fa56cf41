// VirtualBox disk images: header and block map, verified before qemu-img reads one.
import { TransferError } from '#shared/transfer/fault.ts';
import {
  type DiskHeader,
  type DiskReader,
  checkInside,
  corrupt,
  readExactly,
  toSafeNumber,
} from '#shared/transfer/format/disk.ts';

const headerBytes = 512;
const version11 = 0x0001_0001;
const maxBlocks = 0x1fff_ffff;
/** Block map entries from this value on mean that nothing is stored. */
const firstFreeEntry = 0xffff_fffe;
const mapChunkEntries = 256 * 1024;

interface VdiHeader {
  readonly virtualSize: number;
  readonly mapOffset: number;
  readonly dataOffset: number;
  readonly blockSize: number;
  readonly blocks: number;
}

const refuseParents = (head: Buffer): void => {
  const type = head.readUInt32LE(0x4c);
  const hasParent = head.subarray(0x1a8, 0x1c8).some((byte) => byte !== 0);
  if (type === 3 || type === 4 || hasParent) {
    throw new TransferError(
      'ExternalReference',
      'the vdi is a difference to a parent disk; clone it to a full disk and publish that',
    );
  }
  if (type !== 1 && type !== 2)
    throw new TransferError('UnsupportedFormat', `the vdi has image type ${type}; dynamic (1) and fixed (2) are known`);
};

const parseHeader = (head: Buffer): VdiHeader => {
  if (head.readUInt32LE(0x44) !== version11)
    throw new TransferError('UnsupportedFormat', 'the vdi is not of version 1.1');
  refuseParents(head);
  const header = {
    virtualSize: toSafeNumber(head.readBigUInt64LE(0x170), 'the size of the vdi'),
    mapOffset: head.readUInt32LE(0x154),
    dataOffset: head.readUInt32LE(0x158),
    blockSize: head.readUInt32LE(0x178),
    blocks: head.readUInt32LE(0x180),
  };
  if (header.blockSize === 0 || header.blocks > maxBlocks)
    throw corrupt(`the vdi has ${header.blocks} blocks of ${header.blockSize} bytes`);
  if (header.blocks * header.blockSize < header.virtualSize)
    throw corrupt('the vdi has fewer blocks than its size needs');
  return header;
};

export const inspectVdi = async (reader: DiskReader): Promise<DiskHeader> => {
  const header = parseHeader(await readExactly(reader, 0, headerBytes, 'vdi header'));
  checkInside(reader, header.mapOffset, header.blocks * 4, 'the vdi block map');
  return { format: 'vdi', virtualSize: header.virtualSize };
};

/** Reads the whole block map and verifies that every stored block is inside the file (qemu-img does not). */
export const verifyVdi = async (reader: DiskReader): Promise<void> => {
  const { mapOffset, dataOffset, blockSize, blocks } = parseHeader(
    await readExactly(reader, 0, headerBytes, 'vdi header'),
  );
  for (let first = 0; first < blocks; first += mapChunkEntries) {
    const entries = Math.min(mapChunkEntries, blocks - first);
    const map = await readExactly(reader, mapOffset + first * 4, entries * 4, 'vdi block map');
    for (let index = 0; index < entries; index++) {
      const block = map.readUInt32LE(index * 4);
      if (block < firstFreeEntry)
        checkInside(reader, dataOffset + block * blockSize, blockSize, `block ${first + index} of the vdi`);
    }
  }
};
