// Header blocks of a tar archive, and the attributes that may precede them. Pure; called by tar.ts.
import { TransferError } from '#shared/transfer/fault.ts';
import { lookup } from '#shared/runtime/lookup.ts';

export const blockBytes = 512;

export const broken = (message: string): TransferError => new TransferError('ImageCorrupt', `the archive ${message}`);

const textOf = (field: Buffer): string => {
  const end = field.indexOf(0);
  return field.toString('utf8', 0, end === -1 ? field.length : end);
};

/** Octal digits, or big-endian binary for larger numbers. */
const numberOf = (field: Buffer): number => {
  if (((field[0] ?? 0) & 0x80) !== 0) {
    const value = field.subarray(1).reduce((sum, byte) => sum * 256 + byte, (field[0] ?? 0) & 0x7f);
    if (!Number.isSafeInteger(value)) throw broken('has an entry of an impossible size');
    return value;
  }
  const text = textOf(field).trim();
  if (!/^[0-7]*$/.test(text)) throw broken('has a broken header');
  return text === '' ? 0 : Number.parseInt(text, 8);
};

const isChecksumRight = (header: Buffer): boolean => {
  const sum = header.reduce((total, byte, index) => total + (index >= 148 && index < 156 ? 0x20 : byte), 0);
  return sum === numberOf(header.subarray(148, 156));
};

const kinds: Readonly<Record<string, string>> = {
  '0': 'file',
  '\0': 'file',
  '7': 'file',
  '5': 'directory',
  // In incremental archives: a list of names follows.
  D: 'directory',
  '1': 'a hard link',
  '2': 'a symbolic link',
  '3': 'a device',
  '4': 'a device',
  '6': 'a pipe',
  S: 'a sparse file of GNU tar',
};

/** `<length> <key>=<value>\n`, repeated. */
const readPax = (bytes: Buffer): Readonly<Record<string, string>> => {
  const records: Record<string, string> = {};
  for (let at = 0; at < bytes.length;) {
    const space = bytes.indexOf(0x20, at);
    const length = Number(bytes.toString('latin1', at, space));
    if (space === -1 || !Number.isInteger(length) || length < 5 || at + length > bytes.length)
      throw broken('has broken attributes');
    const record = bytes.toString('utf8', space + 1, at + length - 1);
    const equals = record.indexOf('=');
    if (equals < 1 || bytes[at + length - 1] !== 0x0a) throw broken('has broken attributes');
    records[record.slice(0, equals)] = record.slice(equals + 1);
    at += length;
  }
  return records;
};

const cleanName = (name: string): string => {
  const segments = name.split('/').filter((segment) => segment !== '' && segment !== '.');
  if (segments.includes('..') || name.includes('\0'))
    throw broken(`has an entry that leads out of it: ${JSON.stringify(name.slice(0, 200))}`);
  return segments.join('/');
};

/** Attributes of a header from the entries before it. */
export interface Extra {
  readonly path?: string | undefined;
  readonly size?: number | undefined;
  readonly isSparse?: boolean;
}

const nameOf = (header: Buffer): string => {
  const name = textOf(header.subarray(0, 100));
  // GNU tar has another magic, and stores times of incremental archives in this field.
  const prefix = header.toString('latin1', 257, 263) === 'ustar\0' ? textOf(header.subarray(345, 500)) : '';
  return prefix === '' ? name : `${prefix}/${name}`;
};

/** Attributes that apply to all entries: only times and owners, which are ignored, are allowed. */
const forAll = (pax: Readonly<Record<string, string>>, before: Extra): Extra => {
  if (Object.keys(pax).some((key) => key === 'path' || key === 'size' || key.startsWith('GNU.sparse.')))
    throw broken('has one name or size for all its entries');
  return before;
};

/** The attributes in `bytes`, of an entry of this type, added to earlier ones. */
export const extraOf = (type: string, bytes: Buffer, before: Extra): Extra => {
  if (type === 'L') return { ...before, path: textOf(bytes) };
  if (type === 'K') return before;
  const pax = readPax(bytes);
  if (type === 'g') return forAll(pax, before);
  const size = pax['size'];
  return {
    path: pax['path'] ?? before.path,
    size: size === undefined ? before.size : Number(size),
    isSparse: Object.keys(pax).some((key) => key.startsWith('GNU.sparse.')),
  };
};

/** The type of an entry, and the number of bytes after its header. */
export interface Header {
  readonly name: string;
  /** `file`, `directory`, or a description of another type. */
  readonly kind: string;
  readonly size: number;
  /** Permissions of owner, group and others. */
  readonly mode: number;
}

const kindOf = (type: string, { isSparse }: Extra): string =>
  isSparse === true ? 'a sparse file of GNU tar' : (lookup(kinds, type) ?? `an entry of type ${JSON.stringify(type)}`);

/** Whether a file starts like an archive. */
export const isTar = (head: Buffer): boolean => {
  const block = head.subarray(0, blockBytes);
  try {
    return block.length === blockBytes && block.some((byte) => byte !== 0) && isChecksumRight(block);
  } catch {
    return false;
  }
};

/** The type of a header, and the size it contains. Throws ImageCorrupt if its checksum is wrong. */
export const openHeader = (block: Buffer): { readonly type: string; readonly ownSize: number } => {
  if (!isChecksumRight(block)) throw broken('has a broken header, or is not a tar archive');
  return { type: block.toString('latin1', 156, 157), ownSize: numberOf(block.subarray(124, 136)) };
};

/** Whether the entry only describes the next one. */
export const isMeta = (type: string): boolean => 'LKxg'.includes(type);

/** Links, directories, devices and pipes have no content, whatever size their header contains. */
const isBodiless = (type: string): boolean => '123456'.includes(type);

export const readHeader = (block: Buffer, extra: Extra): Header => {
  const { type, ownSize } = openHeader(block);
  const size = isBodiless(type) ? 0 : (extra.size ?? ownSize);
  if (!Number.isSafeInteger(size) || size < 0) throw broken('has an entry of an impossible size');
  const mode = numberOf(block.subarray(100, 108)) & 0o777;
  return { name: cleanName(extra.path ?? nameOf(block)), kind: kindOf(type, extra), size, mode };
};
