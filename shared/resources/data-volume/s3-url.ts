// `source.s3.url` of a DataVolume: `http(s)://store/bucket/key`, always with the bucket in the path, as the original reads it.
import { type Parsed } from '#shared/backends/rules/checksum.ts';
import { parseSourceUrl } from '#shared/backends/rules/source-url.ts';

export interface S3Place {
  /** URL of the store. */
  readonly endpoint: string;
  /** What requests are signed for at first; the store may name another. */
  readonly region: string;
  readonly bucket: string;
  readonly key: string;
}

/** Every store but Amazon's takes any region, and that one is in the host name. */
const regionOf = (host: string): string => /^s3[.-]([a-z0-9-]+)\.amazonaws\.com$/.exec(host)?.[1] ?? 'us-east-1';

export const toS3Place = (text: string): Parsed<S3Place> => {
  const parsed = parseSourceUrl(text);
  if ('problem' in parsed) return parsed;
  const url = new URL(parsed.value);
  const [bucket = '', ...rest] = decode(url.pathname.slice(1)).split('/');
  const key = rest.join('/');
  if (bucket === '' || key === '') {
    return { problem: 'names no object; write https://<store>/<bucket>/<key>, with the bucket in the path' };
  }
  return { value: { endpoint: url.origin, region: regionOf(url.hostname), bucket, key } };
};

/** A key may hold a per cent sign that encodes nothing. */
const decode = (path: string): string => {
  try {
    return decodeURIComponent(path);
  } catch {
    return path;
  }
};
