// Layers that are made to be read in parts: eStargz and zstd:chunked. To any other reader they are archives in gzip and zstd.
import { gzipSync, zstdCompressSync } from 'node:zlib';
import { type TarFile, tarOf } from '#test/support/registry/images.ts';

const chunkBytes = 4096;

const chunksOf = (bytes: Buffer): readonly Buffer[] =>
  Array.from({ length: Math.ceil(bytes.length / chunkBytes) }, (_, index) =>
    bytes.subarray(index * chunkBytes, (index + 1) * chunkBytes),
  );

/** The offset of the table of contents, in the extra field of an empty member. */
const stargzFooter = (tableAt: number): Buffer => {
  const field = Buffer.from(`${tableAt.toString(16).padStart(16, '0')}STARGZ`);
  const extra = Buffer.alloc(6 + field.length);
  extra.writeUInt16LE(4 + field.length, 0);
  extra.write('SG', 2);
  extra.writeUInt16LE(field.length, 4);
  field.copy(extra, 6);
  const header = Buffer.from([0x1f, 0x8b, 8, 4, 0, 0, 0, 0, 0, 0xff]);
  const empty = Buffer.from([1, 0, 0, 0xff, 0xff, 0, 0, 0, 0, 0, 0, 0, 0]);
  return Buffer.concat([header, extra, empty]);
};

/** A gzip member for each chunk, the table of contents as the last file of the archive, and a footer. */
export const eStargz = (files: readonly TarFile[]): Buffer => {
  const entries = tarOf([{ name: '.no.prefetch.landmark', content: Buffer.from([0xf]) }, ...files]).subarray(0, -1024);
  const members = Buffer.concat(chunksOf(entries).map((chunk) => gzipSync(chunk)));
  const table = JSON.stringify({ version: 1, entries: files.map(({ name }) => ({ name, type: 'reg' })) });
  const last = gzipSync(tarOf([{ name: 'stargz.index.json', content: Buffer.from(table) }]));
  return Buffer.concat([members, last, stargzFooter(members.length)]);
};

export const skippable = (content: Buffer): Buffer => {
  const head = Buffer.alloc(8);
  head.writeUInt32LE(0x184d2a50, 0);
  head.writeUInt32LE(content.length, 4);
  return Buffer.concat([head, content]);
};

/** A zstd frame for each chunk; the table of contents and a footer in frames that readers skip. */
export const zstdChunked = (files: readonly TarFile[]): Buffer => {
  const frames = Buffer.concat(chunksOf(tarOf(files)).map((chunk) => zstdCompressSync(chunk)));
  const table = JSON.stringify({ version: 1, entries: files.map(({ name }) => ({ name, type: 'reg' })) });
  const packed = zstdCompressSync(Buffer.from(table));
  const footer = Buffer.alloc(64);
  footer.writeBigUInt64LE(BigInt(frames.length + 8), 0);
  footer.writeBigUInt64LE(BigInt(packed.length), 8);
  footer.writeBigUInt64LE(BigInt(table.length), 16);
  footer.writeBigUInt64LE(1n, 24);
  footer.write('GNUlInUx', 56);
  return Buffer.concat([frames, skippable(packed), skippable(footer)]);
};
