// One object of an S3-compatible store as a source.
import type { ObjectKey, S3Client } from '#shared/clients/s3/client.ts';
import type { BackOffOptions } from '#shared/transfer/back-off.ts';
import { createHttpSource } from '#shared/transfer/source/http/create.ts';
import { createObjectHttp } from '#shared/transfer/source/s3/object-http.ts';
import type { Source } from '#shared/transfer/source/source.ts';

export interface S3SourceOptions {
  readonly s3: S3Client;
  readonly object: ObjectKey;
  readonly retries: number;
  readonly signal: AbortSignal;
  readonly onRetry: (error: unknown, waitMs: number) => void;
  readonly wait?: BackOffOptions['wait'];
  readonly close: () => Promise<void>;
}

/** For messages: nothing is connected to by it. */
const urlOf = ({ bucket, key }: ObjectKey): URL =>
  new URL(`s3://${encodeURIComponent(bucket)}/${key.split('/').map(encodeURIComponent).join('/')}`);

export const createS3Source = ({ s3, object, close, ...backOff }: S3SourceOptions): Source =>
  createHttpSource({ ...backOff, client: createObjectHttp(s3, object, close), url: urlOf(object), secretHeaders: {} });
