// A bucket in memory, for import-object.
import { Readable } from 'node:stream';
import type { ObjectFacts, S3Client } from '#shared/clients/s3/client.ts';
import { S3Failure } from '#shared/clients/s3/errors.ts';
import { Unavailable } from '#shared/runtime/errors.ts';

export interface MemoryBucket {
  readonly s3: Pick<S3Client, 'head' | 'get' | 'list'>;
  readonly put: (key: string, text?: string, metadata?: Readonly<Record<string, string>>) => void;
  readonly remove: (key: string) => void;
  readonly keys: () => readonly string[];
  /** While set, it is unreachable. */
  isAway: boolean;
}

export const createMemoryBucket = (): MemoryBucket => {
  const objects = new Map<string, ObjectFacts & { readonly text: string }>();
  let puts = 0;
  const find = (key: string) => {
    if (bucket.isAway) throw new Unavailable('the store is away');
    const found = objects.get(key);
    if (found === undefined) throw new S3Failure('ObjectNotFound', `${key} is not there`);
    return found;
  };
  const bucket: MemoryBucket = {
    isAway: false,
    keys: () => [...objects.keys()],
    put: (key, text = '', metadata = {}) => {
      const facts = { size: text.length, etag: `"${(puts += 1)}"`, versionId: undefined };
      objects.set(key, { ...facts, text, metadata, lastModified: undefined, contentType: undefined });
    },
    remove: (key) => void objects.delete(key),
    s3: {
      head: async ({ key }) => find(key),
      get: async ({ key }) => {
        const { text, ...facts } = find(key);
        const body = Readable.from([Buffer.from(text)]);
        const pour = async (take: (chunk: Buffer) => void) => take(Buffer.from(text));
        return { ...facts, contentRange: undefined, body, pour, discard: () => undefined };
      },
      list: async function* list(_, prefix = '') {
        if (bucket.isAway) throw new Unavailable('the store is away');
        for (const key of [...objects.keys()].filter((one) => one.startsWith(prefix)).toSorted())
          yield { key, size: objects.get(key)?.size ?? 0, lastModified: undefined };
      },
    },
  };
  return bucket;
};
