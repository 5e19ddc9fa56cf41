// What the object store tells of an object: its facts, and the sidecars beside it.
import type { S3Client } from '#shared/clients/s3/client.ts';
import { S3Failure } from '#shared/clients/s3/errors.ts';
import type { Sidecars, StoredFacts } from '#shared/object-import/description.ts';
import { type ImportRule, sidecarSuffixes } from '#shared/object-import/rules.ts';
import { InvalidInput } from '#shared/runtime/errors.ts';

/** A digest with the names of some files, or a small document. */
const maxSidecarBytes = 64 * 1024;

export interface Place {
  readonly bucket: string;
  readonly key: string;
}

/** Opens the store with what the namespace of a rule has to log in with. */
export type OpenStore = (
  rule: ImportRule,
) => Promise<{ readonly s3: Pick<S3Client, 'head' | 'get' | 'list'>; readonly close: () => Promise<void> }>;

const ifThere = async <T>(read: () => Promise<T>): Promise<T | undefined> => {
  try {
    return await read();
  } catch (error) {
    if (error instanceof S3Failure && error.code === 'ObjectNotFound') return undefined;
    throw error;
  }
};

/** `undefined`: there is no such object. Throws S3Failure for what else the store says. */
export const readFacts = (s3: Pick<S3Client, 'head'>, place: Place): Promise<StoredFacts | undefined> =>
  ifThere(() => s3.head(place));

/** Throws InvalidInput when one is larger than such a file ever is. */
export const readSidecars = async (s3: Pick<S3Client, 'get'>, { bucket, key }: Place): Promise<Sidecars> => {
  const entries = sidecarSuffixes.map(async (suffix) => {
    const text = await ifThere(() => readText(s3, { bucket, key: key + suffix }));
    return [suffix, text] as const;
  });
  return Object.fromEntries(await Promise.all(entries));
};

const readText = async (s3: Pick<S3Client, 'get'>, place: Place): Promise<string> => {
  const content = await s3.get(place);
  if (content.size > maxSidecarBytes) {
    content.discard();
    throw new InvalidInput(
      `${place.key} has ${content.size} bytes: a file beside an image has ${maxSidecarBytes} at most`,
    );
  }
  const chunks: Buffer[] = [];
  for await (const chunk of content.body) chunks.push(chunk);
  return Buffer.concat(chunks).toString('utf8');
};
