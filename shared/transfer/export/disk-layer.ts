// The layer of a containerDisk: a tar archive with one file below /disk, as KubeVirt mounts it. Pure.
import { blockBytes } from '#shared/transfer/archive/tar-header.ts';

/** QEMU's user and group, as KubeVirt expects them. */
const owner = 107;

/** Larger sizes do not fit into the octal digits of a header. */
const mostOctal = 8 ** 11 - 1;

interface Entry {
  readonly name: string;
  readonly size: number;
  readonly mode: number;
  /** `0` a file, `5` a directory, `x` attributes of the next entry. */
  readonly type: '0' | '5' | 'x';
}

const octal = (value: number, length: number): string => `${value.toString(8).padStart(length - 1, '0')}\0`;

/** One header block (POSIX ustar). The time is that of the epoch: the same disk is the same layer. */
const headerOf = ({ name, size, mode, type }: Entry): Buffer => {
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

const paddingOf = (size: number): number => (blockBytes - (size % blockBytes)) % blockBytes;

/** `<length> size=<size>\n`, where the length counts itself. */
const sizeRecord = (size: number): Buffer => {
  const rest = ` size=${size}\n`;
  const digits = String(rest.length + 2).length;
  return Buffer.from(`${rest.length + digits}${rest}`);
};

/** An entry whose attributes apply to the next one. */
const attributes = (content: Buffer): readonly Buffer[] => [
  headerOf({ name: 'attributes', size: content.length, mode: 0o440, type: 'x' }),
  content,
  Buffer.alloc(paddingOf(content.length)),
];

/** What surrounds the file: a directory, and for large files an entry with its size. */
export const layerAround = (name: string, size: number): { readonly head: Buffer; readonly tail: Buffer } => {
  return {
    head: Buffer.concat([
      headerOf({ name: 'disk/', size: 0, mode: 0o555, type: '5' }),
      ...(size <= mostOctal ? [] : attributes(sizeRecord(size))),
      headerOf({ name: `disk/${name}`, size, mode: 0o440, type: '0' }),
    ]),
    tail: Buffer.alloc(paddingOf(size) + 2 * blockBytes),
  };
};
