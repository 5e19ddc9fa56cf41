// A volume as a downloadable file: a stream of bytes, from any offset if the format allows it. For downloads over HTTP.
import { createHash } from 'node:crypto';
import { stat } from 'node:fs/promises';
import { type Encoder, createEncoder, pieceBytes } from '#shared/transfer/export/encoder.ts';
import { type ExportFormat, fileKindOf, levelOf } from '#shared/transfer/export/format.ts';
import { clusterBytes } from '#shared/transfer/export/qcow2/packing.ts';
import { planQcow2 } from '#shared/transfer/export/qcow2/planned.ts';
import { packedBytes, rawBytes } from '#shared/transfer/export/raw.ts';
import { type ExportVolume, hasHiddenZeroes, lookAtVolume } from '#shared/transfer/export/volume.ts';

export interface ExportFileOptions {
  /** A block device, or a raw disk in a file. It must have no writer meanwhile. */
  readonly path: string;
  readonly form: ExportFormat;
  /**
   * How clusters of zeroes outside of holes are handled: `map` treats them as data, and knows the layout at once; `read` reads the volume
   * twice. Default: `read` for devices, and for files with a large share of zeroes in their data, else `map`. Irrelevant for compressed qcow2,
   * which must be compressed twice, and for raw disks.
   */
  readonly zeroes?: 'map' | 'read' | undefined;
  /** Identifies the content of a volume that has no writer any more: the same in every pod. Default: its modification time. */
  readonly identity?: string | undefined;
  /** Aborts all operations. */
  readonly signal: AbortSignal;
}

/** Inclusive, as in `Range: bytes=first-last`. `last` default: to the end. */
export interface ByteRange {
  readonly first: number;
  readonly last?: number | undefined;
}

export interface ExportFile {
  /** Size of the file, for `Content-Length`. `undefined` for raw disks in gz and zst, whose size is known only at the end. */
  readonly size: number | undefined;
  /** Bytes of the guest's disk. */
  readonly virtualSize: number;
  /** Whether ranges can be read, which requires a known size. */
  readonly hasRanges: boolean;
  /** Changes whenever the file does: derived from format, size and content. With quotes, strong. */
  readonly etag: string;
  readonly contentType: string;
  /** Without a dot: `qcow2`, `raw.gz`. */
  readonly extension: string;
  /** Buffers of about 256 KiB, owned by the reader. One reader at a time. Throws TransferError: SourceChanged, SourceInterrupted. */
  read(range?: ByteRange): AsyncGenerator<Buffer, void, undefined>;
  close(): Promise<void>;
}

const chunkBytes = 256 * 1024;

/** Copies short-lived pieces into separate buffers that are large enough for efficient writes. */
async function* chunked(pieces: AsyncIterable<Uint8Array>): AsyncGenerator<Buffer, void, undefined> {
  let chunk = Buffer.allocUnsafeSlow(chunkBytes);
  let filled = 0;
  for await (const piece of pieces) {
    for (let at = 0; at < piece.length;) {
      const count = Math.min(chunkBytes - filled, piece.length - at);
      chunk.set(piece.subarray(at, at + count), filled);
      filled += count;
      at += count;
      if (filled < chunkBytes) continue;
      yield chunk;
      chunk = Buffer.allocUnsafeSlow(chunkBytes);
      filled = 0;
    }
  }
  if (filled > 0) yield chunk.subarray(0, filled);
}

interface Content {
  readonly size: number | undefined;
  readonly bytes: (first: number, end: number) => AsyncIterable<Uint8Array>;
}

const mustBeRead = async (volume: ExportVolume): Promise<boolean> =>
  !(await stat(volume.path)).isFile() || hasHiddenZeroes(volume, clusterBytes);

const contentFor = async (options: ExportFileOptions, volume: ExportVolume, encoder: Encoder): Promise<Content> => {
  const { compression } = options.form;
  if (compression === 'gz' || compression === 'zst')
    return { size: undefined, bytes: () => packedBytes(volume, encoder, compression) };
  if (options.form.format === 'raw')
    return { size: volume.size, bytes: (first, end) => rawBytes(volume, encoder, { first, end }) };
  const by = options.zeroes ?? ((await mustBeRead(volume)) ? 'read' : 'map');
  const planned = await planQcow2({ volume, encoder, compression, by });
  return { size: planned.size, bytes: (first, end) => planned.bytes({ first, end }) };
};

const contentOf = async (path: string): Promise<string> => {
  const { mtimeNs, ctimeNs, ino } = await stat(path, { bigint: true });
  return `${mtimeNs}/${ctimeNs}/${ino}`;
};

const etagOf = async ({ path, form, zeroes, identity }: ExportFileOptions, size: number): Promise<string> => {
  const content = identity ?? (await contentOf(path));
  const parts = [form.format, form.compression, levelOf(form), zeroes ?? '', size, content].join('/');
  return `"${createHash('sha256').update(parts).digest('hex').slice(0, 32)}"`;
};

/** Inspects the volume, and reads it once if required. Throws TransferError. */
export const openExportFile = async (options: ExportFileOptions): Promise<ExportFile> => {
  const { path, form, signal } = options;
  const unitBytes = form.format === 'qcow2' ? clusterBytes : pieceBytes;
  const volume = await lookAtVolume(path, unitBytes, signal);
  const { size: bytes } = volume;
  const encoder = createEncoder({
    path,
    size: bytes,
    packer: form.compression,
    level: levelOf(form),
    unitBytes,
    signal,
  });
  try {
    const content = await contentFor(options, volume, encoder);
    const { size } = content;
    return {
      size,
      virtualSize: volume.size,
      hasRanges: size !== undefined,
      etag: await etagOf(options, bytes),
      ...fileKindOf(form),
      read: ({ first, last } = { first: 0 }) =>
        chunked(content.bytes(first, Math.min(size ?? Infinity, (last ?? Infinity) + 1))),
      close: () => encoder.kill(),
    };
  } catch (error) {
    await encoder.kill();
    throw error;
  }
};
