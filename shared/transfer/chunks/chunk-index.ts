// The table of a disk that is kept in chunks: one object that names every chunk by its content, and is named by its own. Pure.
import { createHash } from 'node:crypto';
import { z } from 'zod';

/** What the file begins with: told by content wherever an image is read. */
export const indexMagic = '{"bullion":"disk-in-chunks"';

const sha256 = z.string().regex(/^[0-9a-f]{64}$/);

export const ChunkIndex = z
  .object({
    bullion: z.literal('disk-in-chunks'),
    version: z.literal(1),
    /** Bytes of the guest's disk. */
    size: z.int().positive(),
    /** Guest bytes of each chunk; the last one has what is left. */
    chunkBytes: z
      .int()
      .min(64 * 1024)
      .max(256 * 2 ** 20),
    compression: z.literal('zstd'),
    /** In order: the digest of the guest's bytes, or null where all of them are zero. */
    chunks: z.array(sha256.nullable()),
  })
  .refine(
    ({ size, chunkBytes, chunks }) => chunks.length === Math.ceil(size / chunkBytes),
    'chunks do not make the disk',
  );
export type ChunkIndex = z.infer<typeof ChunkIndex>;

export const sha256Of = (bytes: Uint8Array): string => createHash('sha256').update(bytes).digest('hex');

/** The same disk gives the same bytes, and with them the same name. */
export const serializeIndex = (index: ChunkIndex): Buffer => {
  const { bullion, version, size, chunkBytes, compression, chunks } = index;
  return Buffer.from(JSON.stringify({ bullion, version, size, chunkBytes, compression, chunks }));
};

/** `undefined` for what is no table, or a damaged one. */
export const parseIndex = (bytes: Buffer): ChunkIndex | undefined => {
  try {
    return ChunkIndex.safeParse(JSON.parse(bytes.toString('utf8'))).data;
  } catch {
    return undefined;
  }
};

/** Bytes of a table: the disk it stands for has 15 TiB in chunks of 4 MiB. */
export const mostTableBytes = 256 * 2 ** 20;

/** Below a prefix that ends in a slash. */
export const chunkKey = (prefix: string, digest: string): string => `${prefix}chunks/${digest.slice(0, 2)}/${digest}`;
export const indexKey = (prefix: string, digest: string): string => `${prefix}disks/${digest}`;

/** The prefix and digest that the key of a table was made from; `undefined` for other keys. */
export const readIndexKey = (key: string): { readonly prefix: string; readonly digest: string } | undefined => {
  const [, prefix = '', digest] = /^(.*)disks\/([0-9a-f]{64})$/.exec(key) ?? [];
  return digest === undefined ? undefined : { prefix, digest };
};

export const bytesOfChunk = ({ size, chunkBytes }: ChunkIndex, index: number): number =>
  Math.min(chunkBytes, size - index * chunkBytes);
