// How an object store refuses, as one of our errors: what is wrong and what to do, never a credential.
import { HttpFailure } from '#shared/clients/http/errors.ts';
import { AppError, type AppErrorOptions, TableError } from '#shared/runtime/errors.ts';

/** Kinds of refusal, and whether trying again can help. */
export const s3Faults = {
  BucketNotFound: { retryable: false },
  ObjectNotFound: { retryable: false },
  UploadNotFound: { retryable: false },
  /** Credentials missing, unknown, expired or not allowed to. */
  Denied: { retryable: false },
  /** The object is not the one that was asked for (If-Match), or is there already (If-None-Match). */
  PreconditionFailed: { retryable: false },
  RangeOutside: { retryable: false },
  /** The object lies in an archive, the request is malformed, and whatever else will not change by itself. */
  Refused: { retryable: false },
  /** 429 or 503: the store wants to be left alone, and may say for how long. */
  RateLimited: { retryable: true },
  Unavailable: { retryable: true },
} as const;
export type S3Fault = keyof typeof s3Faults;

export class S3Failure extends TableError<S3Fault> {
  constructor(code: S3Fault, message: string, options: AppErrorOptions = {}) {
    super(s3Faults, code, message, options);
  }
}

/** What the SDK throws for an answer that is no success. */
export interface ServiceError extends Error {
  readonly $metadata: { readonly httpStatusCode?: number | undefined };
  readonly $response?: { readonly headers?: Readonly<Record<string, string>> } | undefined;
  /** Of AuthorizationHeaderMalformed: the region to sign for. */
  readonly Region?: string;
}

export const isServiceError = (error: unknown): error is ServiceError =>
  error instanceof Error && '$metadata' in error && typeof error.$metadata === 'object' && error.$metadata !== null;

const headerOf = ({ $response }: ServiceError, name: string): string | undefined => $response?.headers?.[name];

/** The region a store says a request should have been signed for; `undefined` when it does not say. */
export const regionHint = (error: unknown): string | undefined => {
  if (!isServiceError(error)) return undefined;
  const status = error.$metadata.httpStatusCode ?? 0;
  const isMisplaced = status === 301 || status === 307 || status === 400;
  return isMisplaced ? (headerOf(error, 'x-amz-bucket-region') ?? error.Region) : undefined;
};

interface Words {
  readonly fault: S3Fault;
  readonly words: string;
}

const byName: Readonly<Record<string, Words>> = {
  NoSuchBucket: { fault: 'BucketNotFound', words: 'the bucket does not exist' },
  NoSuchKey: { fault: 'ObjectNotFound', words: 'the bucket has no such object' },
  NoSuchVersion: { fault: 'ObjectNotFound', words: 'the object has no such version' },
  NoSuchUpload: { fault: 'UploadNotFound', words: 'the upload was completed or aborted' },
  InvalidAccessKeyId: { fault: 'Denied', words: 'the store does not know the access key: check the Secret' },
  SignatureDoesNotMatch: { fault: 'Denied', words: 'the secret key is wrong: check the Secret' },
  ExpiredToken: { fault: 'Denied', words: 'the session token has expired: renew the Secret' },
  InvalidToken: { fault: 'Denied', words: 'the session token is wrong: check the Secret' },
  AccessDenied: { fault: 'Denied', words: 'the credentials are missing or not allowed to do this' },
  AllAccessDisabled: { fault: 'Denied', words: 'the bucket is closed to everyone' },
  // Two conditional writes of one object at the same time: one of them has to come again.
  ConditionalRequestConflict: { fault: 'Unavailable', words: 'another request writes the object at the same time' },
  // Clocks are set right again, and a new signature is made at each try.
  RequestTimeTooSkewed: { fault: 'Unavailable', words: 'the clocks of this machine and of the store differ too much' },
  InvalidObjectState: { fault: 'Refused', words: 'the object lies in an archive: restore it first' },
  InvalidBucketName: { fault: 'Refused', words: 'that is not a valid bucket name' },
  AuthorizationHeaderMalformed: { fault: 'Refused', words: 'the region is wrong: check the configuration' },
  PermanentRedirect: { fault: 'Refused', words: 'the bucket is at another endpoint: check the configuration' },
};

const byStatus = (status: number, hasKey: boolean): Words => {
  if (status === 404) {
    return hasKey
      ? { fault: 'ObjectNotFound', words: 'there is no such bucket or object' }
      : { fault: 'BucketNotFound', words: 'the bucket does not exist' };
  }
  if (status === 401 || status === 403) return byName['AccessDenied'] as Words;
  if (status === 412) return { fault: 'PreconditionFailed', words: 'the object is not the one that was asked for' };
  if (status === 416) return { fault: 'RangeOutside', words: 'the range lies outside of the object' };
  if (status === 429 || status === 503) return { fault: 'RateLimited', words: 'the store takes no more requests now' };
  if (status === 408 || status >= 500) return { fault: 'Unavailable', words: 'the store is busy or broken' };
  return { fault: 'Refused', words: 'the store refuses the request' };
};

/** What a request was about; named in messages. */
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

/** Connection failures stay what they are; so do errors of ours. */
export const toS3Failure = (error: unknown, subject: S3Subject): unknown => {
  if (error instanceof AppError) return error;
  if (error instanceof Error && error.cause instanceof HttpFailure) return error.cause;
  if (!isServiceError(error)) return error;
  const status = error.$metadata.httpStatusCode;
  // An answer that is none of S3: a proxy, a web server, the wrong port.
  if (status === undefined)
    return new S3Failure('Refused', `${nameOf(subject)}: the endpoint does not answer as an object store does`);
  const { fault, words } = byName[error.name] ?? byStatus(status, subject.key !== undefined);
  // A store that repeats what it was asked with may do so here, too.
  const code = /^\w{1,64}$/.test(error.name) ? error.name : 'an unknown code';
  // The cause is left out: it carries the request, whose headers are signed.
  return new S3Failure(fault, `${nameOf(subject)}: ${words} (${status} ${code})`, retryAfterOf(error));
};
