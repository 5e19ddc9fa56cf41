// `destination.s3.url` of an export: `https://bucket.store/key`, as the released operator asked for it, or with the bucket in the path.
import type { Parsed } from '#shared/backends/rules/checksum.ts';
import { parseSourceUrl } from '#shared/backends/rules/source-url.ts';
import { type S3Place, hasBucketInPath, noS3Object, s3PlaceInHost, s3PlaceOf } from '#shared/clients/s3/place.ts';

export const toExportPlace = (text: string): Parsed<S3Place & { readonly pathStyle: boolean }> => {
  const parsed = parseSourceUrl(text);
  if ('problem' in parsed) return parsed;
  const url = new URL(parsed.value);
  if (url.search !== '' || url.hash !== '')
    return { problem: 'has a query or a fragment, which name no object; the credentials are read from secretRef' };
  const pathStyle = hasBucketInPath(url);
  const place = pathStyle ? s3PlaceOf(url) : s3PlaceInHost(url);
  if (place !== undefined) return { value: { ...place, pathStyle } };
  return { problem: pathStyle ? noS3Object : 'names no object; write https://<bucket>.<store>/<key>' };
};
