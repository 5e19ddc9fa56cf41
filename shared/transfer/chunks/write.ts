// Writes a volume as chunks into a store. Existing chunks are not sent again; the table is written last, so that it never refers to a missing
// chunk. If a sweep ran meanwhile, all chunks are checked again.
import type { FileHandle } from 'node:fs/promises';
import { setTimeout as delay } from 'node:timers/promises';
import { promisify } from 'node:util';
import { constants as zlib, zstdCompress } from 'node:zlib';
import type { Store } from '#shared/clients/store/store.ts';
import { isTaken } from '#shared/clients/store/store.ts';
import { chunkKey, indexKey, serializeIndex, sha256Of } from '#shared/transfer/chunks/chunk-index.ts';
import { type ExportVolume, lookAtVolume } from '#shared/transfer/export/volume.ts';
import { toStoreFault } from '#shared/transfer/export/upload.ts';
import { type ObservedSweeps, isQuiet, isSameSweep, readSweeps } from '#shared/transfer/chunks/sweeps.ts';
import { TransferError } from '#shared/transfer/fault.ts';
import { readFully } from '#shared/transfer/file-bytes.ts';
import { openDisk } from '#shared/transfer/source/handle.ts';
import { type BackOffOptions, withBackOff } from '#shared/transfer/back-off.ts';

/** Determined by measurement: README.md. */
export const usualChunkBytes = 4 * 2 ** 20;

/** Chunks that are processed concurrently: at most 12 of them and their compressed forms are in memory. */
const workers = 6;

const compress = promisify(zstdCompress);
/** Higher levels gain nothing: a worker waits longer for the network than for compression. */
const level = 3;

export interface ChunkWrite {
  /** A block device, or a raw disk in a file; it has no writer meanwhile. */
  readonly path: string;
  readonly store: Store;
  /** Prefix of keys; ends in a slash. */
  readonly prefix: string;
  /** Guest bytes of a chunk. Default: `usualChunkBytes`. Other sizes are for measurements. */
  readonly chunkBytes?: number | undefined;
  readonly backOff: Omit<BackOffOptions, 'signal'>;
  readonly signal: AbortSignal;
  /** Waits between checks for a running sweep. Default: a few seconds. Throws the reason of the signal. */
  readonly pause?: ((signal: AbortSignal) => Promise<void>) | undefined;
  /** 0..1. */
  readonly onProgress: (fraction: number) => void;
}

export interface WrittenChunks {
  /** Digest of the table; identifies the disk. */
  readonly disk: string;
  /** Bytes of the guest's disk. */
  readonly size: number;
  /** Number of chunks that are not zero, and of those that were sent. */
  readonly chunks: number;
  readonly newChunks: number;
  /** Bytes of the objects that were sent, including the table. */
  readonly sentBytes: number;
}

interface Writing extends ChunkWrite {
  readonly chunkBytes: number;
  readonly zeroes: Buffer;
  readonly file: FileHandle;
  readonly volume: ExportVolume;
  readonly digests: (string | null)[];
  sent: { chunks: number; bytes: number; readonly keys: Set<string> };
}

const withRetries = <T>({ backOff, signal }: ChunkWrite, work: () => Promise<T>): Promise<T> =>
  withBackOff(
    { ...backOff, signal },
    () => {
      signal.throwIfAborted();
      return work();
    },
    toStoreFault,
  );

/** Beyond the end of the volume the disk is zero. */
const readChunk = async ({ file, volume, chunkBytes }: Writing, index: number): Promise<Buffer> => {
  const offset = index * chunkBytes;
  const bytes = Buffer.allocUnsafe(Math.min(chunkBytes, volume.size - offset));
  const filled = await readFully(file, bytes, offset);
  if (filled + 512 <= bytes.length) throw new TransferError('SourceChanged', 'the volume became shorter');
  return bytes.fill(0, filled);
};

const isZero = (bytes: Buffer, zeroes: Buffer): boolean => bytes.equals(zeroes.subarray(0, bytes.length));

/** If the key is taken by then, it holds the same bytes. `isDamaged`: the existing object has other bytes and is overwritten. */
const put = async (writing: Writing, key: string, bytes: Buffer, isDamaged: boolean): Promise<void> => {
  await withRetries(writing, () =>
    writing.store.write(key, bytes, isDamaged ? undefined : 'nothing').catch((error: unknown) => {
      if (!isTaken(error)) throw error;
    }),
  );
  writing.sent.bytes += bytes.length;
};

const keepChunk = async (writing: Writing, index: number): Promise<void> => {
  const bytes = await readChunk(writing, index);
  if (isZero(bytes, writing.zeroes)) return;
  const digest = sha256Of(bytes);
  writing.digests[index] = digest;
  const key = chunkKey(writing.prefix, digest);
  if (writing.sent.keys.has(key)) return;
  writing.sent.keys.add(key);
  const present = await withRetries(writing, () => writing.store.sizeOf(key));
  if (present !== undefined && present > 0) return;
  const packed = await compress(bytes, { params: { [zlib.ZSTD_c_compressionLevel]: level } });
  await put(writing, key, packed, present !== undefined);
  writing.sent.chunks += 1;
};

/** Indices of chunks that may contain data, in order. */
const chunksOf = ({ extents }: ExportVolume, chunkBytes: number): readonly number[] =>
  extents.flatMap(({ start, end }) => {
    const first = Math.floor(start / chunkBytes);
    return Array.from({ length: Math.ceil(end / chunkBytes) - first }, (_, index) => first + index);
  });

const keepAll = async (writing: Writing): Promise<void> => {
  const todo = chunksOf(writing.volume, writing.chunkBytes);
  let next = 0;
  const work = async (): Promise<void> => {
    for (let at = next++; at < todo.length; at = next++) {
      await keepChunk(writing, todo[at] ?? 0);
      writing.onProgress((at + 1) / todo.length);
    }
  };
  await Promise.all(Array.from({ length: workers }, work));
};

interface Table {
  readonly disk: string;
  readonly bytes: Buffer;
}

const tableOf = ({ volume, digests, chunkBytes }: Writing): Table => {
  const bytes = serializeIndex({
    bullion: 'disk-in-chunks',
    version: 1,
    size: volume.size,
    chunkBytes,
    compression: 'zstd',
    chunks: digests,
  });
  return { disk: sha256Of(bytes), bytes };
};

const keepTable = async (writing: Writing, { disk, bytes }: Table): Promise<void> => {
  const key = indexKey(writing.prefix, disk);
  const present = await withRetries(writing, () => writing.store.sizeOf(key));
  if (present !== bytes.length) await put(writing, key, bytes, present !== undefined);
};

const pauseMs = 5000;

const whenQuiet = async (writing: Writing): Promise<ObservedSweeps> => {
  const { store, prefix, signal, pause = (until) => delay(pauseMs, undefined, { signal: until }) } = writing;
  for (;;) {
    const observed = await withRetries(writing, () => readSweeps(store, prefix));
    if (isQuiet(observed, Date.now())) return observed;
    await pause(signal);
  }
};

const isStill = async (writing: Writing, before: ObservedSweeps): Promise<boolean> =>
  isSameSweep(before, await withRetries(writing, () => readSweeps(writing.store, writing.prefix)));

/** Existing chunks are reliable only if no sweep ran between the first check and the table: checked before it is written and afterwards. */
const keepUnswept = async (writing: Writing): Promise<Table> => {
  for (;;) {
    const before = await whenQuiet(writing);
    writing.sent.keys.clear();
    await keepAll(writing);
    const table = tableOf(writing);
    if (!(await isStill(writing, before))) continue;
    await keepTable(writing, table);
    if (await isStill(writing, before)) return table;
  }
};

/** Throws TransferError, or the reason of the signal. Chunks without a table may remain: the next try finds them and sends only the rest. */
export const writeChunks = async (write: ChunkWrite): Promise<WrittenChunks> => {
  const { chunkBytes = usualChunkBytes } = write;
  const volume = await lookAtVolume(write.path, chunkBytes, write.signal);
  const file = await openDisk(write.path);
  const stop = new AbortController();
  const signal = AbortSignal.any([write.signal, stop.signal]);
  const digests: (string | null)[] = Array.from({ length: Math.ceil(volume.size / chunkBytes) }, () => null);
  const zeroes = Buffer.alloc(chunkBytes);
  const sent = { chunks: 0, bytes: 0, keys: new Set<string>() };
  const writing: Writing = { ...write, chunkBytes, zeroes, signal, file, volume, digests, sent };
  try {
    const { disk } = await keepUnswept(writing);
    const chunks = digests.filter((digest) => digest !== null).length;
    return { disk, size: volume.size, chunks, newChunks: sent.chunks, sentBytes: sent.bytes };
  } catch (error) {
    stop.abort(error);
    throw toStoreFault(error);
  } finally {
    await file.close();
  }
};
