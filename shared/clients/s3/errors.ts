// Errors of an object store as our errors: the cause and what to do, never a credential.
import { HttpFailure } from '#shared/clients/http/errors.ts';
import { AppError, type AppErrorOptions, TableError } from '#shared/runtime/errors.ts';
import { lookup } from '#shared/runtime/lookup.ts';

/** Codes of errors, and whether a retry can help. */
export const s3Faults = {
  BucketNotFound: { retryable: false },
  ObjectNotFound: { retryable: false },
  UploadNotFound: { retryable: false },
  /** Credentials are missing, unknown or expired, or lack a permission. */
  Denied: { retryable: false },
  /** The object has changed (If-Match), or already exists (If-None-Match). */
  PreconditionFailed: { retryable: false },
  RangeOutside: { retryable: false },
  /** The object is archived, the request is malformed, or another permanent error. */
  Refused: { retryable: false },
  /** 429 or 503: the store limits requests, and may say for how long. */
  RateLimited: { retryable: true },
  Unavailable: { retryable: true },
} as const;
export type S3Fault = keyof typeof s3Faults;

export class S3Failure extends TableError<S3Fault> {
  constructor(code: S3Fault, message: string, options: AppErrorOptions = {}) {
    super(s3Faults, code, message, options);
  }
}

/** For removals: not every store answers as if the object had been there. */
export const unlessMissing = async (work: () => Promise<unknown>): Promise<void> => {
  try {
    await work();
  } catch (error) {
    if (!(error instanceof S3Failure) || error.code !== 'ObjectNotFound') throw error;
  }
};

/** The SDK's exception for an unsuccessful answer. */
export interface ServiceError extends Error {
  readonly $metadata: { readonly httpStatusCode?: number | undefined };
  readonly $response?: { readonly headers?: Readonly<Record<string, string>> } | undefined;
  /** For AuthorizationHeaderMalformed: the region to sign for. */
  readonly Region?: string;
}

export const isServiceError = (error: unknown): error is ServiceError =>
  error instanceof Error && '$metadata' in error && typeof error.$metadata === 'object' && error.$metadata !== null;

const headerOf = ({ $response }: ServiceError, name: string): string | undefined => $response?.headers?.[name];

/** The region that the request should have been signed for, according to the store; `undefined` if unknown. */
export const regionHint = (error: unknown): string | undefined => {
  if (!isServiceError(error)) return undefined;
  const status = error.$metadata.httpStatusCode ?? 0;
  const isMisplaced = status === 301 || status === 307 || status === 400;
  return isMisplaced ? (headerOf(error, 'x-amz-bucket-region') ?? error.Region) : undefined;
};

const noBucket = 'the bucket does not exist: create it, or name another one';

interface Explanation {
  readonly fault: S3Fault;
  readonly message: string;
}

const byName: Readonly<Record<string, Explanation>> = {
  NoSuchBucket: { fault: 'BucketNotFound', message: noBucket },
  NoSuchKey: { fault: 'ObjectNotFound', message: 'the bucket has no such object' },
  NoSuchVersion: { fault: 'ObjectNotFound', message: 'the object has no such version' },
  NoSuchUpload: { fault: 'UploadNotFound', message: 'the upload was completed or aborted' },
  InvalidAccessKeyId: { fault: 'Denied', message: 'the access key is unknown to the store: check the Secret' },
  SignatureDoesNotMatch: { fault: 'Denied', message: 'the secret key is wrong: check the Secret' },
  ExpiredToken: { fault: 'Denied', message: 'the session token has expired: renew the Secret' },
  InvalidToken: { fault: 'Denied', message: 'the session token is wrong: check the Secret' },
  AccessDenied: { fault: 'Denied', message: 'the credentials are missing or not allowed to do this' },
  AllAccessDisabled: { fault: 'Denied', message: 'all access to the bucket is disabled' },
  // Two concurrent conditional writes of one object: one of them must be retried.
  ConditionalRequestConflict: { fault: 'Unavailable', message: 'another request is writing the object' },
  // Clocks are corrected, and each attempt has a new signature.
  RequestTimeTooSkewed: {
    fault: 'Unavailable',
    message: 'the clocks of this machine and of the store differ too much',
  },
  InvalidObjectState: { fault: 'Refused', message: 'the object is archived: restore it first' },
  InvalidBucketName: { fault: 'Refused', message: 'that is not a valid bucket name' },
  AuthorizationHeaderMalformed: { fault: 'Refused', message: 'the region is wrong: check the configuration' },
  PermanentRedirect: { fault: 'Refused', message: 'the bucket is at another endpoint: check the configuration' },
};

const byStatus = (status: number, hasKey: boolean): Explanation => {
  if (status === 404) {
    return hasKey
      ? { fault: 'ObjectNotFound', message: 'there is no such bucket or object' }
      : { fault: 'BucketNotFound', message: noBucket };
  }
  if (status === 401 || status === 403) return byName['AccessDenied'] as Explanation;
  if (status === 412) return { fault: 'PreconditionFailed', message: 'the object has changed' };
  if (status === 416) return { fault: 'RangeOutside', message: 'the range is outside of the object' };
  if (status === 429 || status === 503)
    return { fault: 'RateLimited', message: 'the store rejects further requests now' };
  if (status === 408 || status >= 500) return { fault: 'Unavailable', message: 'the store is busy or broken' };
  return { fault: 'Refused', message: 'the store rejected the request' };
};

/** Subject of a request, for messages. */
export interface S3Subject {
  readonly bucket: string;
  readonly key?: string | undefined;
}

export const nameOf = ({ bucket, key }: S3Subject): string =>
  key === undefined ? `bucket ${bucket}` : `${bucket}/${key}`;

const retryAfterOf = (error: ServiceError): AppErrorOptions => {
  const text = headerOf(error, 'retry-after');
  return text !== undefined && /^\d{1,6}$/.test(text) ? { retryAfterSeconds: Number(text) } : {};
};

/** Connection failures and our own errors stay unchanged. */
export const toS3Failure = (error: unknown, subject: S3Subject): unknown => {
  if (error instanceof AppError) return error;
  if (error instanceof Error && error.cause instanceof HttpFailure) return error.cause;
  if (!isServiceError(error)) return error;
  const status = error.$metadata.httpStatusCode;
  // The answer is not from S3: a proxy, a web server, the wrong port.
  if (status === undefined)
    return new S3Failure('Refused', `${nameOf(subject)}: the endpoint does not answer as an object store does`);
  const { fault, message } = lookup(byName, error.name) ?? byStatus(status, subject.key !== undefined);
  // The code of a store may repeat the request and its credentials.
  const code = /^\w{1,64}$/.test(error.name) ? error.name : 'an unknown code';
  // Without the cause: it contains the request with its signed headers.
  return new S3Failure(fault, `${nameOf(subject)}: ${message} (${status} ${code})`, retryAfterOf(error));
};
