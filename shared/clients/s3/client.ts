// Objects in an S3-compatible store. The SDK is loaded with the first request, so that a function without a store starts faster.
import type { Readable } from 'node:stream';
import type { HttpResponse } from '#shared/clients/http/client.ts';
import { unlessMissing } from './errors.ts';
import { createSend, pourOf, type S3ObjectKey, type S3Options } from './send.ts';
import { createMultipart, type MultipartUploads } from '#shared/clients/s3/multipart.ts';

/** Headers that identify an object. */
export interface ObjectFacts {
  /** Bytes of the whole object. */
  readonly size: number;
  /** With its quotes. */
  readonly etag: string | undefined;
  readonly versionId: string | undefined;
  /** RFC 3339. */
  readonly lastModified: string | undefined;
  readonly contentType: string | undefined;
  /** User metadata (`x-amz-meta-…`), names in lower case. */
  readonly metadata: Readonly<Record<string, string>>;
}

export interface ObjectRead extends S3ObjectKey {
  /** Inclusive. `last` default: to the end. Default: the whole object. */
  readonly range?: { readonly first: number; readonly last?: number | undefined } | undefined;
  /** Fails with PreconditionFailed if the object has changed. */
  readonly etag?: string | undefined;
  readonly versionId?: string | undefined;
  readonly signal?: AbortSignal | undefined;
}

export interface ObjectContent extends ObjectFacts {
  /** The range of the body, as in `Content-Range`; `undefined` if it is the whole object. */
  readonly contentRange: string | undefined;
  /** Can be read once. Throws HttpFailure when it is interrupted or idle; leaving the loop early closes the connection. */
  readonly body: AsyncIterable<Buffer>;
  /** Alternative to `body`, as in HttpResponse. */
  readonly pour: HttpResponse['pour'];
  /** Discards the body; must be called if the body is not read. */
  discard(): void;
}

export interface ListedS3Object {
  readonly key: string;
  /** Bytes. */
  readonly size: number;
  /** RFC 3339. */
  readonly lastModified: string | undefined;
}

/** Every method throws S3Failure for errors of the store, HttpFailure for connections, or the reason of the signal. Nothing is retried. */
export interface S3Client {
  head(object: S3ObjectKey): Promise<ObjectFacts>;
  get(read: ObjectRead): Promise<ObjectContent>;
  /** Returns the ETag. With `isNew`: PreconditionFailed if the key is taken; with `etag`: if the object has changed. */
  put(
    object: S3ObjectKey & {
      readonly body: Uint8Array;
      readonly isNew?: boolean;
      readonly etag?: string | undefined;
      readonly signal?: AbortSignal | undefined;
    },
  ): Promise<string | undefined>;
  /** Succeeds if the object does not exist. */
  remove(object: S3ObjectKey): Promise<void>;
  /** Keys in byte order, page by page on demand. */
  list(bucket: string, prefix?: string): AsyncIterable<ListedS3Object>;
  readonly multipart: MultipartUploads;
}

interface SdkFacts {
  readonly ETag?: string | undefined;
  readonly VersionId?: string | undefined;
  readonly LastModified?: Date | undefined;
  readonly ContentType?: string | undefined;
  readonly Metadata?: Readonly<Record<string, string>> | undefined;
}

const factsOf = (answer: SdkFacts, size: number): ObjectFacts => ({
  size,
  etag: answer.ETag,
  // Buckets that never had versioning report the version "null".
  versionId: answer.VersionId === 'null' ? undefined : answer.VersionId,
  lastModified: answer.LastModified?.toISOString(),
  contentType: answer.ContentType,
  metadata: answer.Metadata ?? {},
});

const rangeOf = ({ range }: ObjectRead) =>
  range === undefined ? {} : { Range: `bytes=${range.first}-${range.last ?? ''}` };

/** `bytes 0-9/100` → 100. */
const totalOf = (contentRange: string | undefined): number | undefined => {
  const total = /\/(\d+)$/.exec(contentRange ?? '')?.[1];
  return total === undefined ? undefined : Number(total);
};

export const createS3Client = (options: S3Options): S3Client => {
  const send = createSend(options);
  return {
    head: async ({ bucket, key }) => {
      const answer = await send({ bucket, key }, (sdk, client) =>
        client.send(new sdk.HeadObjectCommand({ Bucket: bucket, Key: key })),
      );
      return factsOf(answer, answer.ContentLength ?? 0);
    },
    get: async (read) => {
      const { bucket, key, etag, versionId, signal } = read;
      const input = { Bucket: bucket, Key: key, IfMatch: etag, VersionId: versionId, ...rangeOf(read) };
      const answer = await send({ bucket, key }, (sdk, client) =>
        client.send(new sdk.GetObjectCommand(input), signal === undefined ? {} : { abortSignal: signal }),
      );
      const body = answer.Body as Readable;
      const size = totalOf(answer.ContentRange) ?? answer.ContentLength ?? 0;
      return {
        ...factsOf(answer, size),
        contentRange: answer.ContentRange,
        body,
        pour: pourOf(body),
        discard: () => void body.destroy(),
      };
    },
    put: async ({ bucket, key, body, isNew = false, etag, signal }) => {
      const input = { Bucket: bucket, Key: key, Body: body, IfMatch: etag, ...(isNew ? { IfNoneMatch: '*' } : {}) };
      const answer = await send({ bucket, key }, (sdk, client) =>
        client.send(new sdk.PutObjectCommand(input), signal === undefined ? {} : { abortSignal: signal }),
      );
      return answer.ETag;
    },
    remove: ({ bucket, key }) =>
      unlessMissing(() =>
        send({ bucket, key }, (sdk, client) => client.send(new sdk.DeleteObjectCommand({ Bucket: bucket, Key: key }))),
      ),
    list: async function* list(bucket, prefix = '') {
      let token: string | undefined;
      do {
        const input = { Bucket: bucket, Prefix: prefix, ContinuationToken: token };
        const page = await send({ bucket }, (sdk, client) => client.send(new sdk.ListObjectsV2Command(input)));
        for (const { Key, Size = 0, LastModified } of page.Contents ?? [])
          if (Key !== undefined) yield { key: Key, size: Size, lastModified: LastModified?.toISOString() };
        token = page.NextContinuationToken;
      } while (token !== undefined);
    },
    multipart: createMultipart(send),
  };
};
