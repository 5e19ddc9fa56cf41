// An export as a transfer: what the spec says, carried out and reported. Loaded by run.ts where it is needed.
import { toStoreFault } from '#shared/transfer/export/store-fault.ts';
import { exportToStore } from '#shared/transfer/export/to-store.ts';
import { type UploadContext, discardObject } from '#shared/transfer/export/upload.ts';
import { TransferError } from '#shared/transfer/fault.ts';
import type { Meter } from '#shared/transfer/meter.ts';
import type { PassResult } from '#shared/transfer/pass.ts';
import { openStore } from '#shared/transfer/source/s3/store.ts';
import type { ExportRequest, TransferSpec } from '#shared/transfer/spec.ts';

export interface ExportContext extends Pick<UploadContext, 'signal' | 'log'> {
  readonly meter: Meter;
  readonly onRetry: (error: unknown, waitMs: number) => void;
}

const requireExport = ({ mode, export: request }: TransferSpec): ExportRequest => {
  if (request === undefined)
    throw new TransferError('InvalidSpec', `mode ${mode} needs \`export\`: what is made, and where`);
  return request;
};

const volumeOf = ({ source }: TransferSpec): string => {
  if (source.type === 'volume') return source.path;
  throw new TransferError('InvalidSpec', `an export is made of a volume, not of a source of type ${source.type}`);
};

const exported = async (spec: TransferSpec, upload: UploadContext, meter: Meter): Promise<PassResult> => {
  const { form, guestDigest } = requireExport(spec);
  const path = volumeOf(spec);
  meter.enter('Converting', 98);
  const onProgress = (fraction: number) => meter.advance(fraction);
  const made = await exportToStore({ ...upload, path, form, hasGuestDigest: guestDigest, onProgress });
  meter.enter('Verifying', 99);
  const compression = form.compression === 'gz' || form.compression === 'zst' ? form.compression : 'none';
  const { size, etag, versionId, isCrc32Confirmed: isConfirmed, digests, virtualSize, readBytes } = made;
  return {
    inspection: { format: form.format, compression, size, virtualSize },
    digests,
    writtenBytes: readBytes,
    object: {
      size,
      isConfirmed,
      ...(etag === undefined ? {} : { etag }),
      ...(versionId === undefined ? {} : { versionId }),
    },
  };
};

/** Throws TransferError, InvalidInput or the signal's reason. */
export const runExport = async (spec: TransferSpec, context: ExportContext): Promise<PassResult> => {
  const { object } = requireExport(spec);
  const { s3, close } = await openStore(object, spec);
  const { signal, log, onRetry, meter } = context;
  const upload = { s3, object, signal, log, patience: { retries: spec.limits.retries, onRetry } };
  try {
    if (spec.mode === 'export') return await exported(spec, upload, meter);
    await discardObject(upload);
    return { inspection: { format: 'raw', compression: 'none' }, digests: {}, writtenBytes: 0 };
  } catch (error) {
    throw toStoreFault(error);
  } finally {
    await close();
  }
};
