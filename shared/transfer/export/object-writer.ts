// Writes an object of a store in parts, in order or with the first part last. It becomes visible only when it is complete.
import type { S3Client } from '#shared/clients/s3/client.ts';
import { S3Failure } from '#shared/clients/s3/errors.ts';
import { combineCrc32 } from '#shared/transfer/export/parts.ts';
import type { Seal, SealRequest } from '#shared/transfer/export/message.ts';
import { type PartPlan, mostParts } from '#shared/transfer/export/parts.ts';
import { TransferError } from '#shared/transfer/fault.ts';
import { type BackOffOptions, createBackOff, withBackOff } from '#shared/transfer/back-off.ts';
import type { CompletedUpload } from '#shared/clients/s3/multipart.ts';
import type { S3ObjectKey } from '#shared/clients/s3/send.ts';

export interface ObjectWriterOptions {
  readonly s3: S3Client;
  readonly object: S3ObjectKey;
  readonly uploadId: string;
  readonly hasCrc32: boolean;
  readonly plan: PartPlan;
  /** `plan.buffers` of `plan.partBytes`. */
  readonly buffers: readonly SharedArrayBuffer[];
  readonly seal: (request: SealRequest) => Promise<Seal>;
  readonly backOff: Omit<BackOffOptions, 'signal'>;
  /** Maps errors of the store to our errors. */
  readonly toFault: (error: unknown) => unknown;
  readonly signal: AbortSignal;
}

export interface WrittenObject {
  readonly size: number;
  readonly etag: string | undefined;
  readonly versionId: string | undefined;
  /** Of the whole object, combined from its parts. */
  readonly crc32: number;
  /** The store computed the same value. */
  readonly isCrc32Confirmed: boolean;
}

export interface ObjectWriter {
  /** Bytes written so far. */
  position(): number;
  /** Copies `bytes`; waits while all buffers are in use. Throws the error of an earlier part. */
  append(bytes: Uint8Array): Promise<void>;
  patchFirst(position: number, bytes: Uint8Array): void;
  /** Sends the remaining parts, the first one last, and completes the object. */
  finish(): Promise<WrittenObject>;
  /** Resolves once no request is in progress. Never throws. */
  settle(): Promise<void>;
}

interface SentPart {
  readonly etag: string;
  readonly crc32: number;
  readonly length: number;
}

interface Part {
  readonly number: number;
  readonly buffer: number;
  readonly length: number;
}

/** Sends one part, with retries. */
const createPartSender = (options: ObjectWriterOptions) => {
  const { s3, object, uploadId, buffers, hasCrc32, signal } = options;
  return async ({ number, buffer, length }: Part): Promise<SentPart> => {
    const { sha256, crc32 } = await options.seal({ part: buffer, length });
    const body = new Uint8Array(buffers[buffer] ?? new SharedArrayBuffer(0), 0, length);
    const check = hasCrc32 ? { sha256, crc32 } : { sha256 };
    const put = () => s3.multipart.putPart({ ...object, uploadId, number, body, signal, ...check });
    const etag = await withBackOff({ ...options.backOff, signal }, put, options.toFault);
    return { etag, crc32, length };
  };
};

const wholeCrc = (parts: readonly SentPart[]): number =>
  parts.reduce((crc, part) => combineCrc32(crc, part.crc32, part.length), 0);

/** If the answer was lost after a success, the upload is gone and the object exists. */
const complete = async (
  options: ObjectWriterOptions,
  upload: { readonly etags: readonly string[]; readonly crc32: number; readonly size: number },
): Promise<CompletedUpload> => {
  const { s3, object, uploadId, hasCrc32, signal } = options;
  const backOff = createBackOff({ ...options.backOff, signal });
  const { etags, crc32, size } = upload;
  for (let tries = 1; ; tries++) {
    try {
      return await s3.multipart.complete({ ...object, uploadId, etags, ...(hasCrc32 ? { crc32 } : {}) });
    } catch (error) {
      signal.throwIfAborted();
      const isGone = tries > 1 && error instanceof S3Failure && error.code === 'UploadNotFound';
      const found = isGone ? await s3.head(object).catch(() => undefined) : undefined;
      if (found?.size === size) return { etag: found.etag, versionId: found.versionId, crc32: undefined };
      await backOff.afterFailure(options.toFault(error));
    }
  }
};

/** Parts in progress, and free buffers. */
const createShipping = (options: ObjectWriterOptions) => {
  const send = createPartSender(options);
  const sent: SentPart[] = [];
  const free = [...options.buffers.keys()].slice(1);
  const onTheirWay = new Set<Promise<void>>();
  let failure: { readonly error: unknown } | undefined;
  const throwFailure = (): void => {
    if (failure !== undefined) throw failure.error;
  };
  const settle = async (): Promise<void> => {
    await Promise.all(onTheirWay);
  };
  return {
    sent,
    throwFailure,
    settle,
    start: (part: Part): void => {
      const work = send(part)
        .then((done) => {
          sent[part.number - 1] = done;
          free.push(part.buffer);
        })
        .catch((error: unknown) => {
          failure ??= { error };
        })
        .finally(() => onTheirWay.delete(work));
      onTheirWay.add(work);
    },
    freeBuffer: async (): Promise<number> => {
      for (let buffer = free.pop(); ; buffer = free.pop()) {
        throwFailure();
        if (buffer !== undefined) return buffer;
        await Promise.race(onTheirWay);
      }
    },
    allSent: async (): Promise<void> => {
      await settle();
      throwFailure();
    },
  };
};

export const createObjectWriter = (options: ObjectWriterOptions): ObjectWriter => {
  const { plan, buffers, object } = options;
  const shipping = createShipping(options);
  const { sent } = shipping;
  let filling = { number: 1, buffer: 0, length: 0 };
  let firstLength: number | undefined;
  let position = 0;
  const viewOf = (buffer: number) => new Uint8Array(buffers[buffer] ?? new SharedArrayBuffer(0));

  /** The first part is kept until all others are sent. */
  const closePart = async (): Promise<void> => {
    if (filling.number === mostParts)
      throw new TransferError('InternalFault', 'the object has more parts than were planned');
    if (filling.number === 1) firstLength = filling.length;
    else shipping.start(filling);
    filling = { number: filling.number + 1, buffer: await shipping.freeBuffer(), length: 0 };
  };
  return {
    position: () => position,
    append: async (bytes) => {
      shipping.throwFailure();
      for (let at = 0; at < bytes.length;) {
        if (filling.length === plan.partBytes) await closePart();
        const count = Math.min(plan.partBytes - filling.length, bytes.length - at);
        viewOf(filling.buffer).set(bytes.subarray(at, at + count), filling.length);
        filling.length += count;
        position += count;
        at += count;
      }
    },
    patchFirst: (at, bytes) => viewOf(0).set(bytes, at),
    finish: async () => {
      if (filling.number > 1) shipping.start(filling);
      await shipping.allSent();
      shipping.start({ number: 1, buffer: 0, length: firstLength ?? filling.length });
      await shipping.allSent();
      const crc32 = wholeCrc(sent);
      const completed = await complete(options, { etags: sent.map(({ etag }) => etag), crc32, size: position });
      if (completed.crc32 !== undefined && completed.crc32 !== crc32) {
        // The object is already visible: no object is better than a wrong one.
        await options.s3.remove(object).catch(() => undefined);
        const message = `the object ${object.key} in the store differs from the bytes that were sent: wrong CRC-32`;
        throw new TransferError('TargetFailed', message);
      }
      const { etag, versionId } = completed;
      return { size: position, etag, versionId, crc32, isCrc32Confirmed: completed.crc32 !== undefined };
    },
    settle: () => shipping.settle(),
  };
};
