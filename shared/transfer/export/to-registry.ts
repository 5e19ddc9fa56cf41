// A volume as a containerDisk in a registry: one layer with a qcow2, which is sent in chunks as the volume is read. Nothing refers to it before the
// manifest, which is last. Called by run.ts.
import { type KeyObject, createHash } from 'node:crypto';
import { HttpFailure } from '#shared/clients/http/errors.ts';
import { digestOf } from '#shared/clients/registry/manifest.ts';
import type { BlobUpload, RegistryPusher } from '#shared/clients/registry/push.ts';
import { RegistryFailure } from '#shared/clients/registry/refusal.ts';
import { type BackOffOptions, withBackOff } from '#shared/transfer/back-off.ts';
import { layerAround } from '#shared/transfer/export/disk-layer.ts';
import { type ExportFileOptions, openExportFile } from '#shared/transfer/export/file.ts';
import { TransferError } from '#shared/transfer/fault.ts';
import {
  type ImageFacts,
  configOf,
  configType,
  describe,
  layerType,
  manifestOf,
  manifestType,
} from '#shared/transfer/export/image-documents.ts';
import { isSignedBy, payloadOf, signatureTag, signedLayer } from '#shared/transfer/export/sign-image.ts';

export interface RegistryExport extends Omit<ExportFileOptions, 'zeroes' | 'identity'> {
  readonly pusher: RegistryPusher;
  readonly tag: string;
  /** The image, for messages. */
  readonly what: string;
  /** Who exports: the UID of the object. An image of somebody else under this tag is not replaced. */
  readonly owner: string;
  /** Name in registries, such as `amd64`. */
  readonly architecture: string;
  readonly about: ImageFacts;
  /** Signs the image before it gets its tag. Default: it is not signed. */
  readonly signer?: ImageSigner | undefined;
  readonly backOff: Omit<BackOffOptions, 'signal'>;
  /** 0..1. */
  readonly onProgress: (fraction: number) => void;
}

export interface ImageSigner {
  readonly key: KeyObject;
  /** `host/repository`, as in the reference of the image. */
  readonly reference: string;
}

export interface PushedImage {
  /** Of the manifest. */
  readonly digest: string;
  /** Bytes of the layer. */
  readonly size: number;
  readonly virtualSize: number;
  /** Of the qcow2. */
  readonly digests: { readonly sha256: string };
}

/** Annotation with the UID of the export. */
export const ownerAnnotation = 'dev.bullion.export';

/** Sent with one request. Two are in memory. */
const chunkBytes = 16 * 1024 * 1024;

/** Faults of the target for errors of a registry or its connection; others are returned unchanged. */
export const toPushFault = (error: unknown): unknown => {
  if (!(error instanceof RegistryFailure) && !(error instanceof HttpFailure)) return error;
  const { message, retryable, retryAfterSeconds } = error;
  const wait = retryAfterSeconds === undefined ? {} : { retryAfterSeconds };
  return new TransferError('TargetFailed', `the registry did not take the image: ${message}`, {
    cause: error,
    retryable,
    ...wait,
  });
};

export type BlobSending = Pick<RegistryExport, 'pusher' | 'backOff' | 'signal'>;

export const withRetries = <T>({ backOff, signal }: BlobSending, work: () => Promise<T>): Promise<T> =>
  withBackOff({ ...backOff, signal }, work, toPushFault);

/** The registry has lost an upload, or a part of it: the blob is sent again. Debian's does where the answer to a chunk did not arrive. */
export class LostUpload extends Error {}

const lostIfAbsent = (error: unknown): never => {
  if (error instanceof RegistryFailure && error.code === 'ImageNotFound') throw new LostUpload(error.message);
  throw error;
};

/** The chunk, from wherever the registry has it after an error. */
export const sendChunk = async (sending: BlobSending, begun: BlobUpload, chunk: Uint8Array): Promise<BlobUpload> => {
  const end = begun.offset + chunk.length;
  let upload = begun;
  let isKnown = true;
  return withRetries(sending, async () => {
    const { pusher } = sending;
    if (!isKnown) upload = await pusher.look(upload).catch(lostIfAbsent);
    if (upload.offset < begun.offset || upload.offset > end) throw new LostUpload(`it has ${upload.offset} bytes`);
    isKnown = false;
    if (upload.offset < end) upload = await pusher.append(upload, chunk.subarray(upload.offset - begun.offset));
    return upload;
  });
};

/** A lost answer to the last request is no failure: the registry then has the blob. */
export const commit = (sending: BlobSending, upload: BlobUpload, digest: string): Promise<void> => {
  let isTried = false;
  return withRetries(sending, async () => {
    if (isTried && (await sending.pusher.hasBlob(digest))) return;
    isTried = true;
    await sending.pusher.commit(upload, digest);
  });
};

/** Chunks of a fixed size, in two buffers that are used in turn. */
export async function* chunksOf(pieces: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array, void, undefined> {
  const buffers = [Buffer.allocUnsafeSlow(chunkBytes), Buffer.allocUnsafeSlow(chunkBytes)] as const;
  let turn: 0 | 1 = 0;
  let filled = 0;
  for await (const piece of pieces) {
    for (let at = 0; at < piece.length;) {
      const count = Math.min(chunkBytes - filled, piece.length - at);
      buffers[turn].set(piece.subarray(at, at + count), filled);
      filled += count;
      at += count;
      if (filled < chunkBytes) continue;
      yield buffers[turn];
      turn = turn === 0 ? 1 : 0;
      filled = 0;
    }
  }
  if (filled > 0) yield buffers[turn].subarray(0, filled);
}

/** Uploads of one blob that may be lost. */
const mostLost = 3;

/** `read`: the blob, from its start. Returns the digest. */
const pushBlob = async (sending: BlobSending, read: () => AsyncIterable<Uint8Array>): Promise<string> => {
  for (let tries = 1; ; tries += 1) {
    try {
      return await pushOnce(sending, read());
    } catch (error) {
      if (!(error instanceof LostUpload)) throw error;
      const message = `the registry loses uploads: ${error.message}`;
      if (tries >= mostLost) throw new TransferError('TargetFailed', message, { retryable: true });
      sending.backOff.onRetry(error, 0);
    }
  }
};

/** Reads the next chunk while one is sent. */
const pushOnce = async (sending: BlobSending, pieces: AsyncIterable<Uint8Array>): Promise<string> => {
  const hash = createHash('sha256');
  let upload = await withRetries(sending, () => sending.pusher.begin());
  let sent = Promise.resolve(upload);
  try {
    for await (const chunk of chunksOf(pieces)) {
      hash.update(chunk);
      upload = await sent;
      sent = sendChunk(sending, upload, chunk);
      // Awaited with the next chunk.
      sent.catch(() => undefined);
    }
    upload = await sent;
    const digest = `sha256:${hash.digest('hex')}`;
    await commit(sending, upload, digest);
    return digest;
  } catch (error) {
    await sent.catch(() => undefined);
    // The registry removes it by itself later.
    await sending.pusher.cancel(upload).catch(() => undefined);
    throw error;
  }
};

async function* listed(bytes: Uint8Array): AsyncGenerator<Uint8Array, void, undefined> {
  yield bytes;
}

/** A tag that holds another image is not replaced. An earlier attempt of this export may have set it. */
const checkTag = async ({ tag, what, owner, ...sending }: RegistryExport): Promise<void> => {
  const found = await withRetries(sending, () => sending.pusher.find(tag));
  if (found === undefined || found.annotations[ownerAnnotation] === owner) return;
  const message = `${what} exists already, with digest ${found.digest}: choose another tag, or delete that image`;
  throw new TransferError('TargetFailed', message, { retryable: false });
};

/** Beside the signatures of others, if there are any. */
const pushSignature = async (request: RegistryExport, { key, reference }: ImageSigner, digest: string) => {
  const { pusher } = request;
  const tag = signatureTag(digest);
  const payload = payloadOf(reference, digest);
  const before = (await withRetries(request, () => pusher.find(tag)))?.layers ?? [];
  if (before.some((layer) => isSignedBy(key, payload, layer))) return;
  const layers = [...before, signedLayer(key, payload)];
  await pushBlob(request, () => listed(payload));
  const config = Buffer.from(
    JSON.stringify({
      architecture: '',
      os: '',
      config: {},
      rootfs: { type: 'layers', diff_ids: layers.map((layer) => layer.digest) },
    }),
  );
  const configDigest = await pushBlob(request, () => listed(config));
  const manifest = manifestOf({
    config: { mediaType: configType, digest: configDigest, size: config.length },
    layers,
  });
  await withRetries(request, () => pusher.putManifest(tag, manifest, manifestType));
};

/** Throws TransferError, or the reason of the signal. */
export const exportToRegistry = async (request: RegistryExport): Promise<PushedImage> => {
  const { pusher, tag, owner, architecture, about, signer, onProgress } = request;
  await checkTag(request);
  const file = await openExportFile(request);
  try {
    const size = file.size ?? 0;
    const { head, tail } = layerAround('disk.qcow2', size);
    let hash = createHash('sha256');
    async function* layer(): AsyncGenerator<Uint8Array, void, undefined> {
      hash = createHash('sha256');
      let done = 0;
      yield head;
      for await (const piece of file.read()) {
        hash.update(piece);
        yield piece;
        done += piece.length;
        onProgress(Math.min(1, done / size));
      }
      yield tail;
    }
    const layerDigest = await pushBlob(request, layer);
    const layerBytes = head.length + size + tail.length;
    const digests = { sha256: hash.digest('hex') };
    const described = describe(about, digests.sha256);
    const config = configOf({ about, architecture, labels: described, layerDigest });
    const manifest = manifestOf({
      config: { mediaType: configType, digest: await pushBlob(request, () => listed(config)), size: config.length },
      layers: [{ mediaType: layerType, digest: layerDigest, size: layerBytes }],
      annotations: { ...described, [ownerAnnotation]: owner },
    });
    const digest = digestOf(manifest);
    // Again: somebody may have pushed meanwhile.
    await checkTag(request);
    // Nobody sees the image before it is signed.
    if (signer !== undefined) await pushSignature(request, signer, digest);
    await withRetries(request, () => pusher.putManifest(tag, manifest, manifestType));
    return { digest, size: layerBytes, virtualSize: file.virtualSize, digests };
  } finally {
    await file.close();
  }
};

/** Removes the image that this export pushed, if the tag still has it. */
export const discardImage = async ({ tag, owner, ...sending }: Pick<RegistryExport, 'tag' | 'owner'> & BlobSending) => {
  const found = await withRetries(sending, () => sending.pusher.find(tag));
  if (found?.annotations[ownerAnnotation] !== owner) return;
  const signature = await withRetries(sending, () => sending.pusher.find(signatureTag(found.digest)));
  await withRetries(sending, () => sending.pusher.removeManifest(found.digest));
  if (signature !== undefined) await withRetries(sending, () => sending.pusher.removeManifest(signature.digest));
};
