// A disk in chunks as a source: recognized by the content of the object, and then read as the guest's disk. Each chunk, and the table, is
// verified against the digest in its name.
import { promisify } from 'node:util';
import { zstdDecompress } from 'node:zlib';
import type { Store } from '#shared/clients/store/store.ts';
import { readWhole } from '#shared/runtime/read-bytes.ts';
import {
  type ChunkIndex,
  bytesOfChunk,
  chunkKey,
  indexMagic,
  mostTableBytes,
  parseIndex,
  readIndexKey,
  sha256Of,
} from '#shared/transfer/chunks/chunk-index.ts';
import { TransferError } from '#shared/transfer/fault.ts';
import { type ByteSource, type SourceFacts, headBytes } from '#shared/transfer/source/source.ts';

const decompress = promisify(zstdDecompress);

/** Chunks that are fetched concurrently. */
const ahead = 4;

export interface ChunkedOptions {
  /** The object itself: other images are passed through unchanged. */
  readonly inner: ByteSource;
  readonly key: string;
  readonly store: Store;
  /** Retries a read while retries are left. */
  readonly withRetries: <T>(work: () => Promise<T>) => Promise<T>;
  readonly signal: AbortSignal;
}

interface Opened {
  readonly index: ChunkIndex;
  readonly prefix: string;
  /** As long as a chunk; read-only. */
  readonly zeroes: Buffer;
}

/** A backup skips chunks that exist by name, so a damaged one must be removed first. */
const damaged = (what: string): TransferError =>
  new TransferError(
    'ImageCorrupt',
    `${what}; restore another backup, or remove the damaged object and the table below disks/ that names it: if the image still exists, what is ` +
      'missing is sent again within the hour',
  );

const readTable = async ({ inner, key }: ChunkedOptions, { head, isWhole, size = 0 }: SourceFacts): Promise<Opened> => {
  if (size > mostTableBytes) throw damaged(`the table of chunks at ${key} has ${size} bytes`);
  const bytes = isWhole ? head : await readWhole(inner.stream());
  const named = readIndexKey(key);
  if (named === undefined) throw damaged(`the table of chunks at ${key} has an invalid key`);
  if (sha256Of(bytes) !== named.digest)
    throw damaged(`the table of chunks at ${key} does not match the digest in its name`);
  const index = parseIndex(bytes);
  if (index === undefined) throw damaged(`the table of chunks at ${key} cannot be read`);
  return { index, prefix: named.prefix, zeroes: Buffer.alloc(index.chunkBytes) };
};

const unpack = async (packed: Buffer, length: number, key: string): Promise<Buffer> => {
  try {
    return await decompress(packed, { maxOutputLength: length });
  } catch {
    throw damaged(`chunk ${key} cannot be unpacked`);
  }
};

/** An incompressible frame is a little larger than its content. */
const mostPacked = (length: number): number => length + length / 64 + 1024;

const readChunk = async (options: ChunkedOptions, opened: Opened, at: number): Promise<[Buffer, number]> => {
  const { index, prefix } = opened;
  const length = bytesOfChunk(index, at);
  const digest = index.chunks[at] ?? null;
  if (digest === null) return [opened.zeroes.subarray(0, length), 0];
  const key = chunkKey(prefix, digest);
  const found = await options.withRetries(() => options.store.read(key, mostPacked(length)));
  if (found === undefined) throw damaged(`chunk ${key} is missing`);
  const bytes = await unpack(found.bytes, length, key);
  if (bytes.length !== length || sha256Of(bytes) !== digest)
    throw damaged(`chunk ${key} does not match the digest in its name`);
  return [bytes, found.bytes.length];
};

/** The disk that a table describes. */
const createDisk = (options: ChunkedOptions, opened: Opened) => {
  const { chunkBytes, chunks } = opened.index;
  let received = 0;
  const chunk = async (at: number): Promise<Buffer> => {
    options.signal.throwIfAborted();
    const [bytes, packed] = await readChunk(options, opened, at);
    received += packed;
    return bytes;
  };
  const readInto = async (offset: number, target: Uint8Array): Promise<void> => {
    for (let filled = 0; filled < target.length;) {
      const at = Math.floor((offset + filled) / chunkBytes);
      const from = (offset + filled) % chunkBytes;
      const bytes = (await chunk(at)).subarray(from, from + target.length - filled);
      if (bytes.length === 0) throw new TransferError('SourceChanged', 'the disk ends before the requested range');
      target.set(bytes, filled);
      filled += bytes.length;
    }
  };
  async function* stream(): AsyncGenerator<Buffer, void, undefined> {
    const coming: Promise<Buffer>[] = [];
    for (let at = 0; at < chunks.length; at++) {
      while (coming.length < ahead && at + coming.length < chunks.length) {
        const next = chunk(at + coming.length);
        // The reader that awaits it gets the error; without a reader it must not be an unhandled rejection.
        next.catch(() => {});
        coming.push(next);
      }
      const bytes = await coming.shift();
      if (bytes !== undefined) yield bytes;
    }
  }
  const read = async (offset: number, length: number): Promise<Buffer> => {
    const bytes = Buffer.alloc(length);
    await readInto(offset, bytes);
    return bytes;
  };
  return { size: opened.index.size, read, readInto, stream, receivedBytes: () => received };
};

const magic = Buffer.from(indexMagic);

/** Passes the object through until it is probed, and if it is another image. */
export const createChunkedSource = (options: ChunkedOptions): ByteSource => {
  const { inner } = options;
  let disk: ReturnType<typeof createDisk> | undefined;
  return {
    probe: async () => {
      const facts = await inner.probe();
      if (!facts.head.subarray(0, magic.length).equals(magic)) return facts;
      disk = createDisk(options, await readTable(options, facts));
      const { size } = disk;
      const head = await disk.read(0, Math.min(headBytes, size));
      return { size, head, isWhole: size <= headBytes, hasRanges: true, isPinned: true, isGuestDisk: true };
    },
    read: (offset, length) => (disk ?? inner).read(offset, length),
    readInto: (offset, target) => (disk ?? inner).readInto(offset, target),
    stream: () => (disk ?? inner).stream(),
    ...(inner.distrust === undefined ? {} : { distrust: inner.distrust }),
    servedFrom: inner.servedFrom,
    receivedBytes: () => inner.receivedBytes() + (disk?.receivedBytes() ?? 0),
    close: () => inner.close(),
  };
};
