// Location of an object, from a URL with the bucket in its path or host. Pure.
import { InvalidInput } from '#shared/runtime/errors.ts';
import { decoded } from '#shared/clients/http/address.ts';

export interface S3Place {
  /** URL of the store. */
  readonly endpoint: string;
  /** Region for the first signature; the store may report another. */
  readonly region: string;
  readonly bucket: string;
  readonly key: string;
}

/** Every store except Amazon's accepts any region; Amazon's is in the host name. */
const regionOf = (host: string): string => /^s3[.-]([a-z0-9-]+)\.amazonaws\.com$/.exec(host)?.[1] ?? 'us-east-1';

/** `undefined`: the URL has no bucket or key. */
export const s3PlaceOf = (url: URL): S3Place | undefined => {
  const [bucket = '', ...rest] = decoded(url.pathname.slice(1)).split('/');
  const key = rest.join('/');
  if (bucket === '' || key === '') return undefined;
  return { endpoint: url.origin, region: regionOf(url.hostname), bucket, key };
};

/** Hosts without a bucket: addresses, names of one label, those of stores themselves and of accounts in Azure, and Services of a cluster. */
const bareHost =
  /^(?:\[.*\]|[\d.]+|[^.]+|s3[.-].*|storage\.googleapis\.com|[^.]+\.blob\.core\..*|[^.]+\.[^.]+\.svc(?:\..*)?)$/;

export const hasBucketInPath = ({ hostname }: URL): boolean => bareHost.test(hostname);

/**
 * The format of clients of the released export: `https://bucket.store/key`. Amazon's buckets may contain dots. `undefined`: the URL has no
 * bucket or key.
 */
export const s3PlaceInHost = (url: URL): S3Place | undefined => {
  const match = /^(.+)\.(s3[.-].*amazonaws\.com)$/.exec(url.hostname) ?? /^([^.]+)\.(.+)$/.exec(url.hostname);
  const [, bucket, host] = match ?? [];
  const key = decoded(url.pathname.slice(1));
  if (bucket === undefined || host === undefined || key === '') return undefined;
  const port = url.port === '' ? '' : `:${url.port}`;
  return { endpoint: `${url.protocol}//${host}${port}`, region: regionOf(host), bucket, key };
};

export const noS3Object =
  'does not refer to an object; write https://<store>/<bucket>/<key>, with the bucket in the path';

// Credentials of an object store, from the common keys of a Secret. Pure.

export interface S3Credentials {
  readonly accessKeyId: string;
  readonly secretAccessKey: string;
  /** For temporary credentials. */
  readonly sessionToken?: string | undefined;
}

/** The first of each is the key of CDI, the others are those of the AWS tools. */
const names = {
  accessKeyId: ['accessKeyId', 'AWS_ACCESS_KEY_ID', 'aws_access_key_id'],
  secretAccessKey: ['secretKey', 'AWS_SECRET_ACCESS_KEY', 'aws_secret_access_key'],
  sessionToken: ['sessionToken', 'AWS_SESSION_TOKEN', 'aws_session_token'],
} as const;

/** Throws InvalidInput, without any content of the Secret, if a key is missing. */
export const parseS3Credentials = (secret: Readonly<Record<string, string>>): S3Credentials => {
  const valueOf = (field: keyof typeof names): string | undefined =>
    names[field].map((name) => secret[name]?.trim()).find((value) => value !== undefined && value !== '');
  const [accessKeyId, secretAccessKey, sessionToken] = [
    valueOf('accessKeyId'),
    valueOf('secretAccessKey'),
    valueOf('sessionToken'),
  ];
  if (accessKeyId === undefined || secretAccessKey === undefined) {
    throw new InvalidInput('the Secret of the object store needs the keys accessKeyId and secretKey');
  }
  return { accessKeyId, secretAccessKey, sessionToken };
};
