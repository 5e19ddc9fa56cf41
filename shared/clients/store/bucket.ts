// A bucket of an S3-compatible store as a Store.
import type { S3Client } from '#shared/clients/s3/client.ts';
import { S3Failure } from '#shared/clients/s3/errors.ts';
import type { Expected, Store } from '#shared/clients/store/store.ts';
import { readWhole } from '#shared/runtime/read-bytes.ts';
import { InvalidInput, Unavailable } from '#shared/runtime/errors.ts';

const ifThere = async <T>(work: () => Promise<T>): Promise<T | undefined> => {
  try {
    return await work();
  } catch (error) {
    if (error instanceof S3Failure && error.code === 'ObjectNotFound') return undefined;
    throw error;
  }
};

const conditionOf = (expected: Expected | undefined) =>
  expected === 'nothing' ? { isNew: true } : { etag: expected?.revision };

/** `signal` aborts reads and writes in progress. */
export const createBucketStore = (s3: S3Client, bucket: string, signal?: AbortSignal): Store => ({
  read: (key, mostBytes) =>
    ifThere(async () => {
      const content = await s3.get({ bucket, key, signal });
      if (content.size > mostBytes) {
        content.discard();
        throw new InvalidInput(`${bucket}/${key} has ${content.size} bytes, more than the limit of ${mostBytes}`);
      }
      const bytes = await readWhole(content.body);
      if (bytes.length !== content.size)
        throw new Unavailable(`${bucket}/${key} was truncated: ${bytes.length} of ${content.size} bytes`);
      return { bytes, revision: content.etag ?? '' };
    }),
  sizeOf: (key) => ifThere(async () => (await s3.head({ bucket, key })).size),
  write: async (key, body, expected) => (await s3.put({ bucket, key, body, signal, ...conditionOf(expected) })) ?? '',
  remove: (key) => s3.remove({ bucket, key }),
  list: async function* list(prefix) {
    for await (const { key, size, lastModified } of s3.list(bucket, prefix))
      // A missing time counts as new.
      yield { key, size, modified: Date.parse(lastModified ?? '') || Date.now() };
  },
});
