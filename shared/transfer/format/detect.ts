// Detects the format of a file from its first bytes, never from its name, and rejects files that are not a disk. Pure.
import { TransferError } from '#shared/transfer/fault.ts';
import type { compressions, imageFormats } from '#shared/transfer/report.ts';

export type ImageFormat = (typeof imageFormats)[number];
export type Compression = (typeof compressions)[number];

interface Magic<T> {
  readonly at: number;
  readonly bytes: string;
  readonly is: T;
}

const compressionMagics: readonly Magic<Compression>[] = [
  { at: 0, bytes: '1f8b08', is: 'gz' },
  { at: 0, bytes: 'fd377a585a00', is: 'xz' },
  { at: 0, bytes: '28b52ffd', is: 'zst' },
];

const formatMagics: readonly Magic<ImageFormat>[] = [
  { at: 0, bytes: '514649fb', is: 'qcow2' },
  { at: 0, bytes: '4b444d56', is: 'vmdk' },
  { at: 0x40, bytes: '7f10dabe', is: 'vdi' },
  { at: 0, bytes: '636f6e6563746978', is: 'vhd' },
  { at: 0, bytes: '7668647866696c65', is: 'vhdx' },
  { at: 0x8001, bytes: '4344303031', is: 'iso' },
];

/** Files that are mistaken for disks, by their common name. */
const foreignMagics: readonly Magic<string>[] = [
  { at: 0, bytes: '504b0304', is: 'a zip archive' },
  { at: 0, bytes: '504b0506', is: 'an empty zip archive' },
  { at: 0x101, bytes: '7573746172', is: 'a tar archive (an OVA or a container layer, perhaps)' },
  { at: 0, bytes: '425a68', is: 'a bzip2 file' },
  { at: 0, bytes: '377abcaf271c', is: 'a 7-Zip archive' },
  { at: 0, bytes: '526172211a07', is: 'a RAR archive' },
  { at: 0, bytes: '04224d18', is: 'an lz4 file' },
  { at: 0, bytes: '213c617263683e0a', is: 'a package or static library' },
  { at: 0, bytes: '434f5744', is: 'an old ESX vmdk (COWD)' },
  { at: 0, bytes: 'bebafeca00000000', is: 'an ESX vmdk (seSparse)' },
  { at: 0, bytes: '51454400', is: 'a QED image' },
  { at: 0, bytes: '576974686f757446726565537061636500', is: 'a Parallels image' },
  { at: 0, bytes: '576974686f75467265537061636578', is: 'a Parallels image' },
  { at: 0, bytes: '25504446', is: 'a PDF document' },
  { at: 0, bytes: '7f454c46', is: 'an ELF program' },
];

const matches = ({ at, bytes }: Magic<unknown>, head: Buffer): boolean =>
  head.subarray(at, at + bytes.length / 2).equals(Buffer.from(bytes, 'hex'));

const find = <T>(magics: readonly Magic<T>[], head: Buffer): T | undefined =>
  magics.find((magic) => matches(magic, head))?.is;

/** A zstd file may start with skippable frames: magic numbers 0x184D2A50 to 0x184D2A5F, little-endian. */
const isSkippableFrame = (head: Buffer): boolean =>
  head.length >= 8 && head.readUInt32LE(0) >= 0x184d2a50 && head.readUInt32LE(0) <= 0x184d2a5f;

export const detectCompression = (head: Buffer): Compression =>
  find(compressionMagics, head) ?? (isSkippableFrame(head) ? 'zst' : 'none');

/** For files of any kind: nothing is rejected. */
export const isQcow2 = (head: Buffer): boolean => find(formatMagics, head) === 'qcow2';

/** The first sectors of a disk contain zeroes or machine code; text means a page, a script or a listing. */
const looksLikeText = (head: Buffer): boolean => {
  const sample = head.subarray(0, 4096);
  if (
    sample.some(
      (byte) => byte < 0x20 && byte !== 0x09 && byte !== 0x0a && byte !== 0x0d && byte !== 0x1b && byte !== 0x0c,
    )
  ) {
    return false;
  }
  // The sample may cut a character at its end: only there a replacement character is accepted.
  return !sample.toString('utf8').slice(0, -2).includes('\uFFFD');
};

const quoteStart = (head: Buffer): string => {
  const start = head
    .subarray(0, 48)
    .toString('latin1')
    .replace(/[^\x20-\x7e]+/g, ' ');
  return `it begins with "${start.trim()}"`;
};

const served = (contentType: string | undefined): string =>
  contentType === undefined ? '' : ` served as ${contentType}`;

const refuseText = (head: Buffer, contentType: string | undefined): never => {
  if (head.subarray(0, 512).toString('latin1').includes('# Disk DescriptorFile')) {
    throw new TransferError(
      'ExternalReference',
      'the file is a vmdk descriptor, whose data is in other files; publish a monolithic or streamOptimized vmdk instead',
    );
  }
  throw new TransferError(
    'NotADiskImage',
    `the file${served(contentType)} is text, not a disk image: ${quoteStart(head)}`,
  );
};

/** A disk has at least one sector. */
export const smallestDiskBytes = 512;

/**
 * The format of an uncompressed file, from its first bytes (an ISO needs 32 KiB of them). `contentType` is used only in messages. Throws
 * TransferError: NotADiskImage, UnsupportedFormat, ExternalReference.
 */
export const detectFormat = (head: Buffer, contentType?: string): ImageFormat => {
  if (head.length === 0) throw new TransferError('NotADiskImage', `the file${served(contentType)} is empty`);
  const foreign = find(foreignMagics, head);
  if (foreign !== undefined) {
    throw new TransferError(
      'UnsupportedFormat',
      `the file is ${foreign}; publish the disk itself, as qcow2 or raw, plain or in gz, xz or zst`,
    );
  }
  const format = find(formatMagics, head);
  if (format !== undefined) return format;
  if (looksLikeText(head)) return refuseText(head, contentType);
  if (head.length < smallestDiskBytes) {
    throw new TransferError(
      'NotADiskImage',
      `the file${served(contentType)} has ${head.length} bytes, less than one sector: ${quoteStart(head)}`,
    );
  }
  return 'raw';
};
