// Maps errors of a store, and of its connection, to faults of the target of an export.
import { HttpFailure } from '#shared/clients/http/errors.ts';
import { S3Failure } from '#shared/clients/s3/errors.ts';
import { TransferError } from '#shared/transfer/fault.ts';

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
