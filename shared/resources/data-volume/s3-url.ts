// `source.s3.url` of a DataVolume: `http(s)://store/bucket/key`, always with the bucket in the path, as the original reads it.
import { type Parsed } from '#shared/backends/rules/checksum.ts';
import { parseSourceUrl } from '#shared/backends/rules/source-url.ts';
import { type S3Place, noS3Object, s3PlaceOf } from '#shared/clients/s3/place.ts';

export const toS3Place = (text: string): Parsed<S3Place> => {
  const parsed = parseSourceUrl(text);
  if ('problem' in parsed) return parsed;
  const place = s3PlaceOf(new URL(parsed.value));
  return place === undefined ? { problem: noS3Object } : { value: place };
};
