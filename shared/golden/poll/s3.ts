// Asks an object store whether an object changed: by its version where the bucket keeps versions, and its ETag. Called by observe.ts.
import type { S3Client } from '#shared/clients/s3/client.ts';
import { s3PlaceOf } from '#shared/clients/s3/place.ts';
import type { Memory, Observation } from '#shared/golden/poll/observation.ts';
import type { S3CronSource } from '#shared/golden/source.ts';
import { validatorDigest } from '#shared/golden/version.ts';
import { InvalidInput } from '#shared/runtime/errors.ts';
import { redactUrl } from '#shared/runtime/redact.ts';

/** One HEAD. Throws S3Failure and HttpFailure. */
export const pollS3 = async (client: S3Client, { url }: S3CronSource, known: Memory): Promise<Observation> => {
  const where = redactUrl(url);
  const place = s3PlaceOf(new URL(url));
  if (place === undefined) throw new InvalidInput(`${where} names no object`);
  const { etag, versionId } = await client.head(place);
  if (etag === undefined && versionId === undefined) {
    const message = `${where} has neither version nor ETag, so that a change cannot be observed`;
    return { is: 'failed', reason: 'NoValidator', message };
  }
  const digest = validatorDigest([url, 's3', versionId, etag]);
  const told = [...(versionId === undefined ? [] : [`version ${versionId}`]), `ETag ${etag ?? 'none'}`].join(' and ');
  if (digest === known.sourceDigest) return { is: 'same', message: `${where} still has ${told}` };
  return { is: 'found', digest, message: `${where} has ${told}`, memory: { sourceDigest: digest } };
};
