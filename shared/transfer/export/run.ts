// Runs an export transfer: executes the spec and reports the result. Loaded by run.ts on demand.
import { readSigningKey } from '#shared/transfer/export/sign-image.ts';
import { clearUploads, discardObject, toStoreFault, type UploadContext } from './upload.ts';
import { exportToStore } from '#shared/transfer/export/to-store.ts';
import { TransferError, isTransferError, writing } from '#shared/transfer/fault.ts';
import type { Meter } from '#shared/transfer/meter.ts';
import type { PassResult } from '#shared/transfer/pass.ts';
import type { Inspection } from '#shared/transfer/report.ts';
import { findCredentials, findMirrorCredentials } from '#shared/clients/registry/credentials.ts';
import { createRegistryPusher, shownImage } from '#shared/clients/registry/push.ts';
import { type Reference, parseReference } from '#shared/clients/registry/reference.ts';
import { createRegistryPace } from '#shared/clients/registry/refusal.ts';
import type { ImageFacts } from '#shared/transfer/export/image-documents.ts';
import { discardImage, exportToRegistry, toPushFault } from '#shared/transfer/export/to-registry.ts';
import { architectureOf } from '#shared/transfer/source/open.ts';
import { openClient, openStore, readBundle, readSecret } from '#shared/transfer/source/access.ts';
import type { ExportRequest, StoredObject, TransferSpec } from '#shared/transfer/spec.ts';
import { createHash } from 'node:crypto';
import { open, rename, rm } from 'node:fs/promises';
import { type ExportFileOptions, openExportFile } from '#shared/transfer/export/file.ts';

/** A volume as a file in a mounted file system: written under a temporary name, and renamed once it is complete. */
interface ExportToFile extends ExportFileOptions {
  /** Path of the new file. */
  readonly target: string;
  /** 0..1. */
  readonly onProgress: (fraction: number) => void;
}

interface ExportedFile {
  readonly size: number;
  readonly virtualSize: number;
  readonly digests: { readonly sha256: string };
}

/** Throws TransferError, or the reason of the signal; then nothing remains. */
const exportToFile = async ({ target, onProgress, ...options }: ExportToFile): Promise<ExportedFile> => {
  const partial = `${target}.partial`;
  const source = await openExportFile(options);
  const hash = createHash('sha256');
  let size = 0;
  try {
    await writing(target, async () => {
      // The result of an earlier try would use the space of this one.
      for (const old of [target, partial]) await rm(old, { force: true });
      const file = await open(partial, 'wx', 0o640);
      try {
        for await (const chunk of source.read()) {
          hash.update(chunk);
          await file.writeFile(chunk);
          size += chunk.length;
          onProgress(Math.min(1, size / (source.size ?? source.virtualSize)));
          options.signal.throwIfAborted();
        }
        await file.sync();
      } finally {
        await file.close();
      }
      await rename(partial, target);
    });
    return { size, virtualSize: source.virtualSize, digests: { sha256: hash.digest('hex') } };
  } catch (error) {
    await rm(partial, { force: true }).catch(() => {});
    options.signal.throwIfAborted();
    throw error;
  } finally {
    await source.close();
  }
};

export interface ExportContext extends Pick<UploadContext, 'signal' | 'log'> {
  readonly meter: Meter;
  readonly onRetry: (error: unknown, waitMs: number) => void;
}

const requireExport = ({ mode, export: request }: TransferSpec): ExportRequest => {
  if (request === undefined)
    throw new TransferError('InvalidSpec', `mode ${mode} needs \`export\`: format and destination`);
  return request;
};

const volumeOf = ({ source }: TransferSpec): string => {
  if (source.type === 'volume') return source.path;
  throw new TransferError(
    'InvalidSpec',
    `the source of an export must be a volume, not a source of type ${source.type}`,
  );
};

const inspectionOf = (
  { form }: ExportRequest,
  made: { readonly size: number; readonly virtualSize: number },
): Inspection => {
  const compression = form.compression === 'gz' || form.compression === 'zst' ? form.compression : 'none';
  return { format: form.format, compression, size: made.size, virtualSize: made.virtualSize };
};

const toStore = async (spec: TransferSpec, upload: UploadContext, meter: Meter): Promise<PassResult> => {
  const request = requireExport(spec);
  const { form, guestDigest } = request;
  const path = volumeOf(spec);
  meter.enter('Converting', 98);
  const onProgress = (fraction: number) => meter.advance(fraction);
  const made = await exportToStore({ ...upload, path, form, hasGuestDigest: guestDigest, onProgress });
  meter.enter('Verifying', 99);
  const { size, etag, versionId, isCrc32Confirmed: isConfirmed, digests, readBytes } = made;
  return {
    inspection: inspectionOf(request, made),
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

const toFile = async (spec: TransferSpec, target: string, { signal, meter }: ExportContext): Promise<PassResult> => {
  const request = requireExport(spec);
  meter.enter('Converting', 98);
  const onProgress = (fraction: number) => meter.advance(fraction);
  const made = await exportToFile({ path: volumeOf(spec), form: request.form, target, signal, onProgress });
  return { inspection: inspectionOf(request, made), digests: made.digests, writtenBytes: made.size };
};

const nothing: PassResult = { inspection: { format: 'raw', compression: 'none' }, digests: {}, writtenBytes: 0 };

const withStore = async (spec: TransferSpec, object: StoredObject, context: ExportContext): Promise<PassResult> => {
  const { s3, close } = await openStore(object, 'write', spec);
  const { signal, log, onRetry, meter } = context;
  const upload = { s3, object, signal, log, backOff: { retries: spec.limits.retries, onRetry } };
  try {
    if (spec.mode === 'export') return await toStore(spec, upload, meter);
    await (spec.mode === 'abort' ? clearUploads(upload) : discardObject(upload));
    return nothing;
  } catch (error) {
    throw toStoreFault(error);
  } finally {
    await close();
  }
};

/** Read before anything is sent. */
const readSigner = async ({ signing }: NonNullable<ExportRequest['image']>) => {
  if (signing === undefined) return undefined;
  const hint = 'a private key in PEM form';
  const secret = await readSecret({ secretDir: signing.dir, secretName: signing.name }, { of: 'the signature', hint });
  return secret && readSigningKey(secret, `the Secret ${signing.name} for signatures`);
};

/** As for mirrors: a Secret that names no registry is for the host that the user wrote. */
const readCredentials = async (
  target: NonNullable<ExportRequest['image']>,
  { place, host }: { readonly place: Pick<Reference, 'host' | 'repository'>; readonly host: string },
) => {
  const secret = await readSecret(target, { of: 'the registry', hint: 'the type kubernetes.io/dockerconfigjson' });
  return secret && (place.host === host ? findCredentials : findMirrorCredentials)(secret, place);
};

const aboutOf = ({ annotations = {}, environment = [], created }: NonNullable<ExportRequest['image']>): ImageFacts => ({
  annotations,
  environment,
  created,
});

const withRegistry = async (
  spec: TransferSpec,
  target: NonNullable<ExportRequest['image']>,
  { signal, meter, onRetry }: ExportContext,
): Promise<PassResult> => {
  const image = parseReference(target.url);
  const { tag = 'latest', host, repository } = image;
  const place = target.places?.at(-1) ?? { host, repository, plainHttp: target.plainHttp ?? false };
  const signer = spec.mode === 'export' ? await readSigner(target) : undefined;
  const http = openClient(spec, await readBundle(target.ca));
  const pusher = createRegistryPusher(place, {
    http,
    credentials: await readCredentials(target, { place, host }),
    plainHttp: place.plainHttp,
    plainHosts: target.plainHosts,
    pace: createRegistryPace(Date.now),
    signal,
  });
  const common = { pusher, tag, owner: target.owner, signal, backOff: { retries: spec.limits.retries, onRetry } };
  try {
    if (spec.mode === 'abort') return nothing;
    if (spec.mode === 'discard') return await discardImage(common).then(() => nothing);
    const request = requireExport(spec);
    meter.enter('Converting', 98);
    const { digest, ...made } = await exportToRegistry({
      ...common,
      path: volumeOf(spec),
      form: request.form,
      what: shownImage(image),
      architecture: target.architecture ?? architectureOf(process.arch),
      about: aboutOf(target),
      signer: signer && { key: signer, reference: `${host}/${repository}` },
      onProgress: (fraction) => meter.advance(fraction),
    });
    return {
      inspection: inspectionOf(request, made),
      digests: made.digests,
      writtenBytes: made.size,
      object: { size: made.size, digest, isConfirmed: true },
    };
  } catch (error) {
    signal.throwIfAborted();
    throw toPushFault(error);
  } finally {
    await http.close();
  }
};

/** The source of an export is a volume: credentials that are missing are those of its destination, and are read before it is asked. */
const toTargetFault = (error: unknown): unknown =>
  isTransferError(error) && error.code === 'SourceForbidden'
    ? new TransferError('TargetFailed', error.message, {
        cause: error,
        retryable: error.retryable,
        sentNothing: true,
      })
    : error;

const toPlace = async (run: Promise<PassResult>): Promise<PassResult> => {
  try {
    return await run;
  } catch (error) {
    throw toTargetFault(error);
  }
};

/** Throws TransferError, InvalidInput or the reason of the signal. */
export const runExport = async (spec: TransferSpec, context: ExportContext): Promise<PassResult> => {
  const { object, path, image } = requireExport(spec);
  if ([object, path, image].filter((place) => place !== undefined).length === 1) {
    if (object !== undefined) return toPlace(withStore(spec, object, context));
    if (image !== undefined) return toPlace(withRegistry(spec, image, context));
    if (path !== undefined && spec.mode === 'export') return toFile(spec, path, context);
  }
  throw new TransferError(
    'InvalidSpec',
    `mode ${spec.mode} needs one destination: \`export.object\`, \`export.image\` or \`export.path\``,
  );
};
