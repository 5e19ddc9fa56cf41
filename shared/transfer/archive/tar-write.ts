// Entries of a tar archive that Bullion writes: the same content gives the same bytes, on any day and for any user. Pure.
import { blockBytes } from '#shared/transfer/archive/tar-header.ts';

/** Larger sizes do not fit into the octal digits of a header. */
const mostOctal = 8 ** 11 - 1;

interface Header {
  readonly name: string;
  readonly size: number;
  readonly mode: number;
  /** User and group. */
  readonly owner: number;
  /** `0` a file, `5` a directory, `x` attributes of the next entry. */
  readonly type: '0' | '5' | 'x';
}

const octal = (value: number, length: number): string => `${value.toString(8).padStart(length - 1, '0')}\0`;

/** One header block (POSIX ustar). The time is that of the epoch. Names have 100 characters at most. */
const headerOf = ({ name, size, mode, owner, type }: Header): Buffer => {
  const block = Buffer.alloc(blockBytes);
  block.write(name, 0, 100);
  block.write(octal(mode, 8), 100);
  block.write(octal(owner, 8), 108);
  block.write(octal(owner, 8), 116);
  block.write(octal(Math.min(size, mostOctal), 12), 124);
  block.write(octal(0, 12), 136);
  block.write(' '.repeat(8), 148);
  block.write(type, 156);
  block.write('ustar\0' + '00', 257);
  const sum = block.reduce((total, byte) => total + byte, 0);
  block.write(`${sum.toString(8).padStart(6, '0')}\0 `, 148);
  return block;
};

/** Bytes after a file, up to the next block. */
export const paddingOf = (size: number): number => (blockBytes - (size % blockBytes)) % blockBytes;

/** Two empty blocks. */
export const endBytes = 2 * blockBytes;

/** `<length> size=<size>\n`, where the length counts itself. */
const sizeRecord = (size: number): Buffer => {
  const rest = ` size=${size}\n`;
  const digits = String(rest.length + 2).length;
  return Buffer.from(`${rest.length + digits}${rest}`);
};

/** An entry whose attributes apply to the next one. */
const attributes = (content: Buffer, owner: number): readonly Buffer[] => [
  headerOf({ name: 'attributes', size: content.length, mode: 0o440, owner, type: 'x' }),
  content,
  Buffer.alloc(paddingOf(content.length)),
];

/** What comes before the bytes of a file; large files have an entry with their size. */
export const fileHead = (file: Omit<Header, 'type'>): Buffer =>
  Buffer.concat([
    ...(file.size <= mostOctal ? [] : attributes(sizeRecord(file.size), file.owner)),
    headerOf({ ...file, type: '0' }),
  ]);

export const directoryHead = (directory: Omit<Header, 'type' | 'size'>): Buffer =>
  headerOf({ ...directory, size: 0, type: '5' });
