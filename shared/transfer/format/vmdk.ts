// VMware disks in one file (monolithicSparse, streamOptimized): header and descriptor, verified before qemu-img reads one.
import { TransferError } from '#shared/transfer/fault.ts';
import {
  type DiskHeader,
  type DiskReader,
  checkInside,
  corrupt,
  readExactly,
  toSafeNumber,
} from '#shared/transfer/format/disk.ts';

const sector = 512;
const headerBytes = 512;
/** qemu looks for a parent at this fixed position, whatever the header contains. */
const fixedDescriptor = { offset: 0x200, length: 20 * sector };
const maxDescriptorBytes = 64 * 1024;
const directoryAtEnd = 0xffff_ffff_ffff_ffffn;
const maxGrainSectors = 2 ** 14;
const entriesPerTable = 512;

interface VmdkHeader {
  readonly flags: number;
  readonly capacitySectors: number;
  readonly grainSectors: number;
  readonly descriptor: { readonly offset: number; readonly length: number };
  readonly directoryOffset: bigint;
}

const parseHeader = (head: Buffer): VmdkHeader => {
  if (head.toString('latin1', 0, 4) !== 'KDMV') throw corrupt('the vmdk header has lost its magic number');
  const version = head.readUInt32LE(4);
  if (version < 1 || version > 3)
    throw new TransferError('UnsupportedFormat', `the vmdk has version ${version}; 1 to 3 are known`);
  const header = {
    flags: head.readUInt32LE(8),
    capacitySectors: toSafeNumber(head.readBigUInt64LE(12), 'the size of the vmdk'),
    grainSectors: toSafeNumber(head.readBigUInt64LE(20), 'the grain size of the vmdk'),
    descriptor: {
      offset: toSafeNumber(head.readBigUInt64LE(28), 'the descriptor offset of the vmdk') * sector,
      length: toSafeNumber(head.readBigUInt64LE(36), 'the descriptor size of the vmdk') * sector,
    },
    directoryOffset: head.readBigUInt64LE(56),
  };
  if (header.capacitySectors === 0) {
    throw new TransferError(
      'ExternalReference',
      'the vmdk contains only a descriptor, its data is in other files; publish a streamOptimized vmdk',
    );
  }
  if (header.grainSectors < 1 || header.grainSectors > maxGrainSectors)
    throw corrupt(`the vmdk has grains of ${header.grainSectors} sectors`);
  if (head.readUInt32LE(44) !== entriesPerTable)
    throw corrupt(`the vmdk has ${head.readUInt32LE(44)} entries a table; 512 are defined`);
  if (header.descriptor.length > maxDescriptorBytes)
    throw corrupt(`the vmdk descriptor has ${header.descriptor.length} bytes`);
  return header;
};

const refuseParent = (text: string): void => {
  const parent = /^\s*parentCID\s*=\s*([0-9a-f]+)/im.exec(text)?.[1]?.toLowerCase();
  if (/parentFileNameHint/i.test(text) || (parent !== undefined && !/^f{8,}$/.test(parent))) {
    throw new TransferError(
      'ExternalReference',
      'the vmdk is a difference to a parent disk; clone it to a full disk and publish that',
    );
  }
};

/** VMware's keywords for an extent in the same file: `RDONLY` if it is read-only, with any name, even one that is not a file name. */
const extentLine = /^[ \t]*(RW|RDONLY|NOACCESS)[ \t]+(\d+)[ \t]+(\w+)(?:[ \t]|$).*$/gim;

const refusePiece = (): never => {
  throw new TransferError(
    'ExternalReference',
    'the vmdk is one piece of a disk that is split into several files (as -s001.vmdk is); publish the whole disk in one, as monolithicSparse or streamOptimized',
  );
};

const checkType = (text: string): void => {
  const type = /^[ \t]*createType\s*=\s*"([^"]*)"/im.exec(text)?.[1] ?? '';
  if (/^(monolithicSparse|streamOptimized)$/i.test(type)) return;
  const message = `the vmdk is of type "${type.slice(0, 40)}"; publish a monolithicSparse or streamOptimized one`;
  throw new TransferError(/flat|vmfs|extent|custom/i.test(type) ? 'ExternalReference' : 'UnsupportedFormat', message);
};

/** A vmdk may refer to no extent other than itself. */
const checkExtents = (text: string): void => {
  const extents = [...text.matchAll(extentLine)].map(([, access = '', , kind = '']) => ({ access, kind }));
  const [first] = extents;
  if (extents.length !== 1 || first?.kind.toUpperCase() !== 'SPARSE') {
    const named = extents.length === 1 ? `a ${first?.kind} extent` : `${extents.length || 'no'} extents`;
    throw new TransferError(
      'ExternalReference',
      `the vmdk names ${named}; exactly one of type SPARSE, in the file itself, is allowed`,
    );
  }
  if (first.access.toUpperCase() === 'NOACCESS')
    throw new TransferError(
      'UnsupportedFormat',
      'the extent of the vmdk is marked NOACCESS and cannot be read; export the disk again',
    );
};

const checkDescriptor = (text: string): void => {
  refuseParent(text);
  if (text.trim() === '') refusePiece();
  checkType(text);
  checkExtents(text);
};

export const inspectVmdk = async (reader: DiskReader): Promise<DiskHeader> => {
  const header = parseHeader(await readExactly(reader, 0, headerBytes, 'vmdk header'));
  const fixed = await reader.read(fixedDescriptor.offset, fixedDescriptor.length);
  refuseParent(fixed.toString('latin1'));
  const { offset, length } = header.descriptor;
  if (offset === 0) refusePiece();
  const descriptor = await readExactly(reader, offset, length, 'vmdk descriptor');
  checkDescriptor(descriptor.toString('latin1').replace(/\0[\s\S]*$/, ''));
  if (header.directoryOffset !== directoryAtEnd) {
    checkInside(
      reader,
      toSafeNumber(header.directoryOffset, 'the grain directory offset of the vmdk') * sector,
      4,
      'the vmdk grain directory',
    );
  }
  return { format: 'vmdk', virtualSize: header.capacitySectors * sector };
};

const compressedFlag = 0x1_0000;
const markersFlag = 0x2_0000;

/** A streamOptimized file ends with footer and end marker; without them it is truncated. */
const readFooter = async (reader: DiskReader, size: number): Promise<VmdkHeader> => {
  const tail = await readExactly(reader, size - 3 * sector, 3 * sector, 'vmdk footer');
  const isComplete = tail.readUInt32LE(sector * 0 + 12) === 3 && tail.toString('latin1', sector, sector + 4) === 'KDMV';
  if (!isComplete) throw new TransferError('ImageTruncated', 'the vmdk lacks its footer: the file is cut off');
  return parseHeader(tail.subarray(sector, 2 * sector));
};

const readTable = async (reader: DiskReader, offset: number, entries: number, what: string): Promise<Uint32Array> => {
  const bytes = await readExactly(reader, offset, entries * 4, what);
  return Uint32Array.from({ length: entries }, (_, index) => bytes.readUInt32LE(index * 4));
};

/** If grains may be compressed, a marker contains their length: sector number, then bytes. */
const grainLength = async (reader: DiskReader, offset: number, header: VmdkHeader): Promise<number> => {
  if ((header.flags & compressedFlag) === 0) return header.grainSectors * sector;
  if ((header.flags & markersFlag) === 0) return 4;
  return 12 + (await readExactly(reader, offset, 12, 'vmdk grain')).readUInt32LE(8);
};

/** Verifies that every stored grain is inside the file. */
export const verifyVmdk = async (reader: DiskReader): Promise<void> => {
  const first = parseHeader(await readExactly(reader, 0, headerBytes, 'vmdk header'));
  const isAtEnd = first.directoryOffset === directoryAtEnd;
  const header = isAtEnd ? await readFooter(reader, reader.size ?? 0) : first;
  if (header.capacitySectors !== first.capacitySectors)
    throw corrupt('header and footer of the vmdk disagree on its size');
  const grains = Math.ceil(header.capacitySectors / header.grainSectors);
  const tables = Math.ceil(grains / entriesPerTable);
  const directory = await readTable(reader, Number(header.directoryOffset) * sector, tables, 'vmdk grain directory');
  for (const at of directory) {
    if (at === 0) continue;
    const table = await readTable(reader, at * sector, entriesPerTable, 'vmdk grain table');
    for (const grain of table) {
      // 0: nothing stored; 1: zeroes.
      if (grain > 1)
        checkInside(reader, grain * sector, await grainLength(reader, grain * sector, header), 'a grain of the vmdk');
    }
  }
};
