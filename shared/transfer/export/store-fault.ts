// What a store or the way to it says to an export, as a fault of the target.
import { HttpFailure } from '#shared/clients/http/errors.ts';
import { S3Failure } from '#shared/clients/s3/errors.ts';
import { TransferError } from '#shared/transfer/fault.ts';

/** Other errors come back as they are. */
export const toStoreFault = (error: unknown): unknown => {
  if (!(error instanceof S3Failure) && !(error instanceof HttpFailure)) return error;
  const { message, retryable, retryAfterSeconds } = error;
  const wait = retryAfterSeconds === undefined ? {} : { retryAfterSeconds };
  return new TransferError('TargetFailed', `the object store does not take the export: ${message}`, {
    cause: error,
    retryable,
    ...wait,
  });
};
