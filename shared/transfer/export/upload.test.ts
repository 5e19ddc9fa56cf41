import { describe, expect, it } from 'vitest';
import type { S3Client } from '#shared/clients/s3/client.ts';
import { type S3Fault, S3Failure } from '#shared/clients/s3/errors.ts';
import { type UploadContext, clearUploads, discardObject } from '#shared/transfer/export/upload.ts';

/** A store that refuses whatever is asked. */
const refusing = (code: S3Fault): UploadContext => {
  const refuse = async () => {
    throw new S3Failure(code, 'the words of the store');
  };
  return {
    s3: { remove: refuse, multipart: { list: refuse, abort: refuse } } as unknown as S3Client,
    object: { bucket: 'exports', key: 'root.qcow2' },
    backOff: { retries: 0, onRetry: () => undefined },
    signal: new AbortController().signal,
    log: () => undefined,
  };
};

describe.each([
  ['unfinished uploads', clearUploads],
  ['the object', discardObject],
])('what is left of an export: %s', (_, clear) => {
  it('is nothing where there is no bucket', async () => {
    await expect(clear(refusing('BucketNotFound'))).resolves.toBeUndefined();
  });

  it('is said where it cannot be removed', async () => {
    await expect(clear(refusing('Denied'))).rejects.toThrow('the words of the store');
  });
});
