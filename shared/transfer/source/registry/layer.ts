// One layer of an image: its blob is streamed once, resumed after an interruption, decompressed by its content, verified against its digest at
// the end.
import { createHash } from 'node:crypto';
import type { RegistryClient } from '#shared/clients/registry/client.ts';
import { type Descriptor, algorithmOf } from '#shared/clients/registry/manifest.ts';
import type { Reference } from '#shared/clients/registry/reference.ts';
import { decompress } from '#shared/transfer/compression/decompress.ts';
import { TransferError } from '#shared/transfer/fault.ts';
import { detectCompression } from '#shared/transfer/format/detect.ts';
import type { BackOff } from '#shared/transfer/back-off.ts';
import { HttpFailure } from '#shared/clients/http/errors.ts';
import { RegistryFailure, type RegistryFault } from '#shared/clients/registry/refusal.ts';
import type { TransferFault } from '#shared/transfer/report.ts';
import { toTransferError as fromHttp } from '#shared/transfer/source/http/session.ts';

/** Faults of a transfer for errors of a registry or its connection. */
const faultOf: Readonly<Record<RegistryFault, TransferFault>> = {
  Unauthorized: 'SourceForbidden',
  ImageNotFound: 'SourceNotFound',
  PlatformAbsent: 'SourceNotFound',
  DigestMismatch: 'SourceInterrupted',
  InvalidImage: 'NotADiskImage',
  RateLimited: 'SourceUnavailable',
  RegistryFailed: 'SourceUnavailable',
};

/** Other errors are returned unchanged. */
export const toTransferError = (error: unknown): unknown => {
  if (error instanceof HttpFailure) return fromHttp(error);
  if (!(error instanceof RegistryFailure)) return error;
  const { retryAfterSeconds } = error;
  const asked = retryAfterSeconds === undefined ? {} : { retryAfterSeconds };
  return new TransferError(faultOf[error.code], error.message, { cause: error, ...asked });
};

export interface LayerContext {
  readonly client: RegistryClient;
  readonly image: Reference;
  readonly createBackOff: () => BackOff;
  /** Called with the number of received bytes. */
  readonly received: (bytes: number) => void;
  /** Of a layer that is unpacked. Default: no limit. */
  readonly mostUnpacked?: number | undefined;
}

/** The bytes of one answer from `position` on: a server without ranges starts at 0. */
async function* freshBytes(context: LayerContext, layer: Descriptor, position: number) {
  const response = await context.client.blob(context.image, layer.digest, position);
  let repeated = response.status === 206 ? 0 : position;
  for await (const chunk of response.body) {
    context.received(chunk.length);
    const fresh = chunk.subarray(Math.min(repeated, chunk.length));
    repeated -= chunk.length - fresh.length;
    if (fresh.length > 0) yield fresh;
  }
}

/** The blob from a position on, resumed after interruptions; nothing compares its digest. Throws TransferError when no retry is left. */
export async function* bytesFrom(
  context: LayerContext,
  layer: Descriptor,
  start: number,
): AsyncGenerator<Buffer, void, undefined> {
  const backOff = context.createBackOff();
  let position = start;
  while (position < layer.size) {
    try {
      for await (const fresh of freshBytes(context, layer, position)) {
        position = advance(layer, position, fresh.length);
        backOff.progressed(fresh.length);
        yield fresh;
      }
      if (position < layer.size) throw new TransferError('SourceInterrupted', `layer ${layer.digest} ended too early`);
    } catch (error) {
      const fault = toTransferError(error);
      if (fault instanceof TransferError && fault.startOver) throw fault;
      await backOff.afterFailure(fault);
    }
  }
}

/** The blob as published. Throws TransferError when no retry is left, or ImageCorrupt at the end if its digest does not match. */
export async function* blobBytes(context: LayerContext, layer: Descriptor): AsyncGenerator<Buffer, void, undefined> {
  const hash = createHash(algorithmOf(layer.digest));
  for await (const fresh of bytesFrom(context, layer, 0)) {
    hash.update(fresh);
    yield fresh;
  }
  const digest = `${algorithmOf(layer.digest)}:${hash.digest('hex')}`;
  if (digest !== layer.digest) throw mismatch(layer, `arrived with digest ${digest}`);
}

const advance = (layer: Descriptor, position: number, bytes: number): number => {
  if (position + bytes > layer.size) throw mismatch(layer, `has more than its ${layer.size} bytes`);
  return position + bytes;
};

/** Worth another download, because a proxy or the network may have corrupted it. */
const mismatch = (layer: Descriptor, problem: string): TransferError =>
  new TransferError('ImageCorrupt', `layer ${layer.digest} ${problem}`, { retryable: true, startOver: true });

/** The first bytes of a stream, and a view of all of it that can be left without closing it. */
const peek = async (input: AsyncGenerator<Buffer, void, undefined>, length: number) => {
  const held: Buffer[] = [];
  for (let got = 0; got < length;) {
    const next = await input.next();
    if (next.done === true) break;
    held.push(next.value);
    got += next.value.length;
  }
  const head = Buffer.concat(held);
  const next = async (): Promise<IteratorResult<Buffer, void>> => {
    const value = held.shift();
    return value === undefined ? input.next() : { value, done: false };
  };
  return { head, whole: { [Symbol.asyncIterator]: () => ({ next }) } as AsyncIterable<Buffer> };
};

/** Few bytes can unpack to very many. */
async function* bounded(unpacked: AsyncIterable<Buffer>, { digest }: Descriptor, most = Number.POSITIVE_INFINITY) {
  let length = 0;
  for await (const part of unpacked) {
    length += part.length;
    if (length > most)
      throw new TransferError('ImageCorrupt', `layer ${digest} unpacks to more than the ${most} bytes of its disk`);
    yield part;
  }
}

/** The archive in a layer. The media type is ignored: the first bytes decide. */
export async function* layerContent(context: LayerContext, layer: Descriptor): AsyncGenerator<Buffer, void, undefined> {
  const blob = blobBytes(context, layer);
  try {
    const { head, whole } = await peek(blob, 8);
    const compression = detectCompression(head);
    if (compression === 'xz') {
      const message = `layer ${layer.digest} is an xz file; layers are plain, gzip or zstd`;
      throw new TransferError('UnsupportedFormat', message);
    }
    yield* bounded(decompress(compression, whole), layer, context.mostUnpacked);
    // Remaining bytes after the archive belong to the blob: its digest is verified at its end.
    for await (const rest of whole) void rest;
  } finally {
    await blob.return();
  }
}
