// What a registry or its connection did wrong, as a fault of the transfer.
import { HttpFailure } from '#shared/clients/http/errors.ts';
import { RegistryFailure, type RegistryFault } from '#shared/clients/registry/errors.ts';
import { TransferError } from '#shared/transfer/fault.ts';
import type { TransferFault } from '#shared/transfer/report.ts';
import { toTransferError as fromHttp } from '#shared/transfer/source/http/session.ts';

const faultOf: Readonly<Record<RegistryFault, TransferFault>> = {
  Unauthorized: 'SourceForbidden',
  ImageNotFound: 'SourceNotFound',
  PlatformAbsent: 'SourceNotFound',
  DigestMismatch: 'SourceInterrupted',
  InvalidImage: 'NotADiskImage',
  RateLimited: 'SourceUnavailable',
  RegistryFailed: 'SourceUnavailable',
};

/** Other errors come back as they are. */
export const toTransferError = (error: unknown): unknown => {
  if (error instanceof HttpFailure) return fromHttp(error);
  if (!(error instanceof RegistryFailure)) return error;
  const { retryAfterSeconds } = error;
  const asked = retryAfterSeconds === undefined ? {} : { retryAfterSeconds };
  return new TransferError(faultOf[error.code], error.message, { cause: error, ...asked });
};
