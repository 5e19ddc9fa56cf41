import { describe, expect, it } from 'vitest';
import type { S3Client } from '#shared/clients/s3/client.ts';
import { type S3Fault, S3Failure } from '#shared/clients/s3/errors.ts';
import { type UploadContext, clearUploads, discardObject, withUpload } from '#shared/transfer/export/upload.ts';

/** A store that rejects every request. */
const refusing = (code: S3Fault): UploadContext => {
  const refuse = async () => {
    throw new S3Failure(code, 'the words of the store');
  };
  return {
    s3: { remove: refuse, multipart: { begin: refuse, list: refuse, abort: refuse } } as unknown as S3Client,
    object: { bucket: 'exports', key: 'root.qcow2' },
    backOff: { retries: 0, onRetry: () => undefined },
    signal: new AbortController().signal,
    log: () => undefined,
  };
};

it.each<[S3Fault, boolean]>([
  ['Denied', true],
  ['BucketNotFound', true],
  ['Unavailable', false],
])('has sent nothing where the store refuses to begin, unless its answer was lost: %s', async (code, sentNothing) => {
  const context = refusing(code);
  await expect(withUpload(context, 'x', async () => undefined)).rejects.toMatchObject({
    code: 'TargetFailed',
    sentNothing,
  });
});

describe.each([
  ['unfinished uploads', clearUploads],
  ['the object', discardObject],
])('removing the parts of an export: %s', (_, clear) => {
  it('succeeds when the bucket does not exist', async () => {
    await expect(clear(refusing('BucketNotFound'))).resolves.toBeUndefined();
  });

  it('reports parts that cannot be removed', async () => {
    await expect(clear(refusing('Denied'))).rejects.toThrow('the words of the store');
  });
});
