// The table of a disk in chunks: one object that lists every chunk by its digest, and is itself named by its digest. Pure.
import { createHash } from 'node:crypto';
import { z } from 'zod';
import { parseJsonAs } from '#shared/runtime/json.ts';

/** The start of the file, by which an image is recognized as a table. */
export const indexMagic = '{"bullion":"disk-in-chunks"';

const sha256 = z.string().regex(/^[0-9a-f]{64}$/);

export const ChunkIndex = z
  .object({
    bullion: z.literal('disk-in-chunks'),
    version: z.literal(1),
    /** Bytes of the guest's disk. */
    size: z.int().positive(),
    /** Guest bytes of each chunk; the last one may be shorter. */
    chunkBytes: z
      .int()
      .min(64 * 1024)
      .max(256 * 2 ** 20),
    compression: z.literal('zstd'),
    /** In order: the digest of the guest's bytes, or null if all of them are zero. */
    chunks: z.array(sha256.nullable()),
  })
  .refine(
    ({ size, chunkBytes, chunks }) => chunks.length === Math.ceil(size / chunkBytes),
    'the number of chunks does not match the size of the disk',
  );
export type ChunkIndex = z.infer<typeof ChunkIndex>;

export const sha256Of = (bytes: Uint8Array): string => createHash('sha256').update(bytes).digest('hex');

/** Equal disks give equal bytes, and thus equal names. */
export const serializeIndex = (index: ChunkIndex): Buffer => {
  const { bullion, version, size, chunkBytes, compression, chunks } = index;
  return Buffer.from(JSON.stringify({ bullion, version, size, chunkBytes, compression, chunks }));
};

/** `undefined` if it is not a table, or is damaged. */
export const parseIndex = (bytes: Buffer): ChunkIndex | undefined => parseJsonAs(ChunkIndex, bytes.toString('utf8'));

/** Size limit of a table: a disk of 15 TiB in chunks of 4 MiB. */
export const mostTableBytes = 256 * 2 ** 20;

/** `prefix` ends in a slash. */
export const chunkKey = (prefix: string, digest: string): string => `${prefix}chunks/${digest.slice(0, 2)}/${digest}`;
export const indexKey = (prefix: string, digest: string): string => `${prefix}disks/${digest}`;

/** The prefix and digest in the key of a table; `undefined` for other keys. */
export const readIndexKey = (key: string): { readonly prefix: string; readonly digest: string } | undefined => {
  const [, prefix = '', digest] = /^(.*)disks\/([0-9a-f]{64})$/.exec(key) ?? [];
  return digest === undefined ? undefined : { prefix, digest };
};

export const bytesOfChunk = ({ size, chunkBytes }: ChunkIndex, index: number): number =>
  Math.min(chunkBytes, size - index * chunkBytes);
