// The message for an error response of a store, whatever its code.
import { describe, expect, it } from 'vitest';
import { toS3Failure } from '#shared/clients/s3/errors.ts';

describe('an error response of a store', () => {
  it.each([
    ['NoSuchBucket', { bucket: 'exports', key: 'root.qcow2' }, 'exports/root.qcow2'],
    ['NotFound', { bucket: 'exports' }, 'bucket exports'],
  ])('says once that there is no bucket, and to create it: %s', (name, subject, what) => {
    const error = Object.assign(new Error('no'), { name, $fault: 'client', $metadata: { httpStatusCode: 404 } });
    expect(toS3Failure(error, subject)).toMatchObject({
      code: 'BucketNotFound',
      message: `${what}: the bucket does not exist: create it, or name another one (404 ${name})`,
    });
  });

  it.each(['constructor', '__proto__', 'toString', 'Unheard'])(
    'with the code %s is classified by its status',
    (name) => {
      const error = Object.assign(new Error('no'), { name, $fault: 'client', $metadata: { httpStatusCode: 403 } });
      expect(toS3Failure(error, { bucket: 'images', key: 'disk' })).toMatchObject({
        code: 'Denied',
        message: expect.stringContaining('images'),
      });
    },
  );
});
