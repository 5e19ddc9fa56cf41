// The message for an error response of a store, whatever its code.
import { describe, expect, it } from 'vitest';
import { toS3Failure } from '#shared/clients/s3/errors.ts';

describe('an error response of a store', () => {
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
