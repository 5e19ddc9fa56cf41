// An S3 object as an HTTP file, so that the HTTP source reads it: located once, pinned, resumed and read by ranges in the same way.
import type { HttpClient, HttpResponse } from '#shared/clients/http/client.ts';
import type { ObjectContent, S3Client } from '#shared/clients/s3/client.ts';
import { S3Failure, type S3Fault } from '#shared/clients/s3/errors.ts';
import { TransferError } from '#shared/transfer/fault.ts';
import type { TransferFault } from '#shared/transfer/report.ts';
import { changedFault } from '#shared/transfer/source/http/answer.ts';
import type { BackOffOptions } from '#shared/transfer/back-off.ts';
import { createHttpSource } from '#shared/transfer/source/http/read.ts';
import type { ResumableSource } from '#shared/transfer/source/source.ts';
import type { S3ObjectKey } from '#shared/clients/s3/send.ts';

const faultOf: Readonly<Record<S3Fault, TransferFault>> = {
  BucketNotFound: 'SourceNotFound',
  ObjectNotFound: 'SourceNotFound',
  Denied: 'SourceForbidden',
  PreconditionFailed: 'SourceChanged',
  RangeOutside: 'SourceChanged',
  UploadNotFound: 'SourceRefused',
  Refused: 'SourceRefused',
  RateLimited: 'SourceUnavailable',
  Unavailable: 'SourceUnavailable',
};

/** Other errors are returned unchanged. */
export const toTransferError = (error: unknown): unknown => {
  if (!(error instanceof S3Failure)) return error;
  const { retryAfterSeconds } = error;
  return new TransferError(
    faultOf[error.code],
    error.message,
    retryAfterSeconds === undefined ? {} : { retryAfterSeconds },
  );
};

const rangeOf = (header: string | undefined) => {
  const [, first, last] = /^bytes=(\d+)-(\d*)$/.exec(header ?? '') ?? [];
  if (first === undefined) return undefined;
  return last === '' ? { first: Number(first) } : { first: Number(first), last: Number(last) };
};

const lengthOf = ({ contentRange, size }: ObjectContent): Record<string, string> =>
  contentRange === undefined ? { 'content-length': String(size) } : { 'content-range': contentRange };

const toResponse = (content: ObjectContent): HttpResponse => ({
  status: content.contentRange === undefined ? 200 : 206,
  headers: {
    ...lengthOf(content),
    ...(content.etag === undefined ? {} : { etag: content.etag }),
    ...(content.contentType === undefined ? {} : { 'content-type': content.contentType }),
  },
  body: content.body,
  pour: content.pour,
  discard: () => content.discard(),
});

async function* nothing(): AsyncGenerator<Buffer, void, undefined> {}

/** The answer of an empty object to every range. */
const rangeOutside: HttpResponse = {
  status: 416,
  headers: {},
  body: nothing(),
  pour: () => Promise.resolve(),
  discard: () => {},
};

/**
 * If the bucket has versioning, all reads use the version that was found first. `If-Range` becomes `If-Match`, which stores support better: a
 * changed object is an error, not another file.
 */
export const createObjectHttp = (s3: S3Client, object: S3ObjectKey, close: () => Promise<void>): HttpClient => {
  let versionId: string | undefined;
  /** The object exists but the pinned version does not. */
  const isGone = (error: unknown): boolean =>
    error instanceof S3Failure &&
    (error.code === 'PreconditionFailed' || (error.code === 'ObjectNotFound' && versionId !== undefined));
  return {
    get: async ({ headers = {}, signal }) => {
      const range = rangeOf(headers['range']);
      const etag = headers['if-range'] === '' ? undefined : headers['if-range'];
      try {
        const content = await s3.get({ ...object, range, etag, versionId, signal });
        versionId ??= content.versionId;
        return toResponse(content);
      } catch (error) {
        if (error instanceof S3Failure && error.code === 'RangeOutside') return rangeOutside;
        if (!isGone(error)) throw toTransferError(error);
        versionId = undefined;
        throw changedFault(`${object.bucket}/${object.key}`);
      }
    },
    close,
  };
};

/** One object of an S3-compatible store as a source. */
interface S3SourceOptions {
  readonly s3: S3Client;
  readonly object: S3ObjectKey;
  readonly retries: number;
  readonly signal: AbortSignal;
  readonly onRetry: (error: unknown, waitMs: number) => void;
  readonly wait?: BackOffOptions['wait'];
  readonly close: () => Promise<void>;
}

/** For messages only; no connection is made to it. */
const urlOf = ({ bucket, key }: S3ObjectKey): URL =>
  new URL(`s3://${encodeURIComponent(bucket)}/${key.split('/').map(encodeURIComponent).join('/')}`);

export const createS3Source = ({ s3, object, close, ...backOff }: S3SourceOptions): ResumableSource =>
  createHttpSource({ ...backOff, client: createObjectHttp(s3, object, close), url: urlOf(object), secretHeaders: {} });
