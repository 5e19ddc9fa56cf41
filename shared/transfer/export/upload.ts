// Ensures that no unfinished upload remains: every upload is completed or aborted, and those of a killed process are aborted first.
import { setTimeout as delay } from 'node:timers/promises';
import { HttpFailure } from '#shared/clients/http/errors.ts';
import type { S3Client } from '#shared/clients/s3/client.ts';
import { S3Failure } from '#shared/clients/s3/errors.ts';
import type { S3ObjectKey } from '#shared/clients/s3/send.ts';
import { type BackOffOptions, withBackOff } from '#shared/transfer/back-off.ts';
import { TransferError, isTransferError } from '#shared/transfer/fault.ts';

// Maps errors of a store, and of its connection, to faults of the target of an export.

/** Other errors are returned unchanged. */
export const toStoreFault = (error: unknown): unknown => {
  if (!(error instanceof S3Failure) && !(error instanceof HttpFailure)) return error;
  const { message, retryable, retryAfterSeconds } = error;
  const wait = retryAfterSeconds === undefined ? {} : { retryAfterSeconds };
  return new TransferError('TargetFailed', `the object store rejected the export: ${message}`, {
    cause: error,
    retryable,
    ...wait,
  });
};

export interface Upload {
  readonly uploadId: string;
  /** The store verifies the whole object by its CRC-32. */
  readonly hasCrc32: boolean;
}

export interface UploadContext {
  readonly s3: S3Client;
  readonly object: S3ObjectKey;
  readonly backOff: Omit<BackOffOptions, 'signal'>;
  readonly signal: AbortSignal;
  readonly log: (message: string, facts: Readonly<Record<string, unknown>>) => void;
}

/** Timeout of an abort, in milliseconds; a cancelled job must end within a second. */
const abortMs = { failed: 10_000, cancelled: 500 } as const;

const withRetries = <T>({ backOff, signal }: UploadContext, work: () => Promise<T>): Promise<T> =>
  withBackOff({ ...backOff, signal }, work, toStoreFault);

/** Older stores support no checksum of a whole object, and some reject it. */
const beginChecked = async ({ s3, object }: UploadContext, contentType: string): Promise<Upload> => {
  try {
    return { uploadId: await s3.multipart.begin({ ...object, contentType, hasCrc32: true }), hasCrc32: true };
  } catch (error) {
    if (!(error instanceof S3Failure) || error.code !== 'Refused') throw error;
    return { uploadId: await s3.multipart.begin({ ...object, contentType }), hasCrc32: false };
  }
};

/**
 * Aborts the uploads of exactly this key, which has only one writer. A store that does not permit listing them is tolerated, since it may
 * remove them by its own rules.
 */
const abortLeftovers = async (context: UploadContext): Promise<void> => {
  try {
    await abortUploads(context);
  } catch (error) {
    context.signal.throwIfAborted();
    context.log('uploads that an earlier attempt may have left could not be aborted', { error });
  }
};

const abortUploads = async ({ s3, object }: UploadContext): Promise<void> => {
  for (const { key, uploadId } of await s3.multipart.list(object.bucket, object.key)) {
    if (key === object.key) await s3.multipart.abort({ ...object, uploadId });
  }
};

/** A missing bucket contains no uploads. */
const unlessNoBucket = async (work: () => Promise<void>): Promise<void> => {
  try {
    await work();
  } catch (error) {
    if (!(error instanceof S3Failure) || error.code !== 'BucketNotFound') throw error;
  }
};

/** The last step of a failed export: retried while that can help; other errors are reported. */
export const clearUploads = (context: UploadContext): Promise<void> =>
  withRetries(context, () => unlessNoBucket(() => abortUploads(context)));

/** A store that refused to begin has no parts; where its answer was lost, it may. */
const toUnsent = (error: unknown): unknown =>
  isTransferError(error) && !error.retryable
    ? new TransferError(error.code, error.message, { cause: error, retryable: false, sentNothing: true })
    : error;

/** Passes a new upload to `work`; if it throws, the upload is aborted. */
export const withUpload = async <T>(
  context: UploadContext,
  contentType: string,
  work: (upload: Upload) => Promise<T>,
): Promise<T> => {
  await abortLeftovers(context);
  const upload = await withRetries(context, () => beginChecked(context, contentType)).catch((error: unknown) => {
    throw toUnsent(error);
  });
  try {
    return await work(upload);
  } catch (error) {
    const { s3, object, log, signal } = context;
    const aborting = s3.multipart
      .abort({ ...object, uploadId: upload.uploadId })
      .catch((cause: unknown) => log('an unfinished upload could not be aborted', { error: cause }));
    await Promise.race([
      aborting,
      delay(signal.aborted ? abortMs.cancelled : abortMs.failed, undefined, { ref: false }),
    ]);
    throw error;
  }
};

/** Removes the object and all its unfinished uploads. */
export const discardObject = async (context: UploadContext): Promise<void> => {
  await abortLeftovers(context);
  await withRetries(context, () => unlessNoBucket(() => context.s3.remove(context.object)));
};
