// A volume as an object of a store, in one pass and without staging.
import { setMaxListeners } from 'node:events';
import { createHash } from 'node:crypto';
import { type Encoder, createEncoder, pieceBytes } from '#shared/transfer/export/encoder.ts';
import type { SealRequest } from '#shared/transfer/export/message.ts';
import { type ExportFormat, fileKindOf, levelOf } from '#shared/transfer/export/format.ts';
import { type ObjectWriter, type WrittenObject, createObjectWriter } from '#shared/transfer/export/object-writer.ts';
import { type PartPlan, planParts } from '#shared/transfer/export/parts.ts';
import { clustersOf } from '#shared/transfer/export/qcow2/packing.ts';
import { headBytes, layOut } from '#shared/transfer/export/qcow2/layout.ts';
import { clusterBytes, createPacking, placeCluster } from '#shared/transfer/export/qcow2/packing.ts';
import { packedBytes, rawBytes } from '#shared/transfer/export/raw.ts';
import { toStoreFault, type Upload, type UploadContext, withUpload } from './upload.ts';
import { type ExportVolume, dataBytes, lookAtVolume } from '#shared/transfer/export/volume.ts';

export interface StoreExport extends UploadContext {
  /** A block device, or a raw disk in a file. */
  readonly path: string;
  readonly form: ExportFormat;
  readonly hasGuestDigest: boolean;
  /** 0..1. */
  readonly onProgress: (fraction: number) => void;
}

export interface ExportedObject extends WrittenObject {
  readonly virtualSize: number;
  /** Guest bytes that were read, without holes. */
  readonly readBytes: number;
  /** Hex digests as in TransferReport. */
  readonly digests: Readonly<Record<string, string>>;
}

interface Making {
  readonly request: StoreExport;
  readonly volume: ExportVolume;
  readonly encoder: Encoder;
  readonly writer: ObjectWriter;
}

const zeroes = Buffer.alloc(clusterBytes);

/** Data first, then the tables; header and L1 table are written into the first part, which is sent last. */
const writeQcow2 = async ({ request, volume, encoder, writer }: Making): Promise<undefined> => {
  const compression = request.form.compression as 'none' | 'zlib' | 'zstd';
  const packing = createPacking(volume.size);
  for (let at = 0; at < headBytes(volume.size); at += clusterBytes) await writer.append(zeroes);
  let done = 0;
  const total = dataBytes(volume);
  for await (const piece of encoder.encode(volume.extents)) {
    for (const { cluster, length, bytes } of clustersOf(piece)) {
      packing.set(cluster, length);
      const { start } = placeCluster(writer.position(), length);
      await writer.append(zeroes.subarray(0, start - writer.position()));
      await writer.append(bytes);
    }
    done += piece.length;
    request.onProgress(done / total);
  }
  const layout = layOut(packing, { virtualSize: volume.size, compression, tables: 'last' });
  while (writer.position() < layout.size) {
    const toBoundary = clusterBytes - (writer.position() % clusterBytes);
    if (toBoundary < clusterBytes) await writer.append(zeroes.subarray(0, toBoundary));
    else await writer.append(layout.tableCluster(writer.position()));
  }
  for (let at = 0; at < layout.dataStart; at += clusterBytes) writer.patchFirst(at, layout.tableCluster(at));
};

/** Returns the sha256 of the object. An uncompressed raw disk consists of the guest's bytes, which a thread digests anyway. */
const writeRaw = async ({ request, volume, encoder, writer }: Making): Promise<string | undefined> => {
  const { compression } = request.form;
  const isPacked = compression === 'gz' || compression === 'zst';
  const bytes = isPacked
    ? packedBytes(volume, encoder, compression)
    : rawBytes(volume, encoder, { first: 0, end: volume.size });
  const hash = isPacked ? createHash('sha256') : undefined;
  let done = 0;
  for await (const piece of bytes) {
    hash?.update(piece);
    await writer.append(piece);
    done += pieceBytes;
    request.onProgress(Math.min(1, done / volume.size));
  }
  return hash?.digest('hex');
};

/** Upper limit of the object's size: all data uncompressed, and tables; members of gzip may grow by a thousandth. */
const mostBytes = ({ form }: StoreExport, volume: ExportVolume): number => {
  if (form.format === 'raw') return Math.ceil(volume.size * (form.compression === 'none' ? 1 : 1.01));
  const tables = headBytes(volume.size) + 2 * clusterBytes * (1 + Math.ceil(volume.size / (clusterBytes * 8192)));
  return Math.ceil((dataBytes(volume) + tables) * 1.001) + 4 * clusterBytes;
};

const isPlainRaw = ({ format, compression }: ExportFormat): boolean => format === 'raw' && compression === 'none';

const make = async (making: Making): Promise<ExportedObject> => {
  const { request, volume, encoder, writer } = making;
  const own = await (request.form.format === 'qcow2' ? writeQcow2(making) : writeRaw(making));
  const [guest, written] = await Promise.all([encoder.guestDigest(), writer.finish()]);
  const sha256 = isPlainRaw(request.form) ? guest : own;
  return {
    ...written,
    virtualSize: volume.size,
    readBytes: dataBytes(volume),
    digests: {
      crc32: written.crc32.toString(16).padStart(8, '0'),
      ...(sha256 === undefined ? {} : { sha256 }),
      ...(guest === undefined ? {} : { 'guest-sha256': guest }),
    },
  };
};

const makeUpload = async (request: StoreExport, volume: ExportVolume, plan: PartPlan, upload: Upload) => {
  const { s3, object, form, backOff } = request;
  // On any error, requests in progress are cancelled before the upload is aborted.
  const stop = new AbortController();
  const signal = AbortSignal.any([request.signal, stop.signal]);
  setMaxListeners(0, signal);
  const buffers = Array.from({ length: plan.buffers }, () => new SharedArrayBuffer(plan.partBytes));
  const encoder = createEncoder({
    path: volume.path,
    size: volume.size,
    packer: form.compression,
    level: levelOf(form),
    unitBytes: form.format === 'qcow2' ? clusterBytes : pieceBytes,
    parts: buffers,
    hasGuestDigest: request.hasGuestDigest || isPlainRaw(form),
    signal,
  });
  const seal = (part: SealRequest) => encoder.seal(part);
  const writer = createObjectWriter({
    s3,
    object,
    ...upload,
    plan,
    buffers,
    seal,
    backOff,
    toFault: toStoreFault,
    signal,
  });
  try {
    return await make({ request, volume, encoder, writer });
  } catch (error) {
    stop.abort(error);
    request.signal.throwIfAborted();
    throw toStoreFault(error);
  } finally {
    await encoder.kill();
    await writer.settle();
  }
};

/** Throws TransferError, or the reason of the signal; then the store has no new object under this key, and no unfinished upload of it. */
export const exportToStore = async (request: StoreExport): Promise<ExportedObject> => {
  const unit = request.form.format === 'qcow2' ? clusterBytes : pieceBytes;
  const volume = await lookAtVolume(request.path, unit, request.signal);
  const plan = planParts(mostBytes(request, volume));
  const { contentType } = fileKindOf(request.form);
  return withUpload(request, contentType, (upload) => makeUpload(request, volume, plan, upload));
};
