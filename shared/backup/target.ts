// The configured backup target of a cluster: Harvester's setting, or a ConfigMap with its Secret. Pure.
import { z } from 'zod';
import { hasCloudKey } from '#shared/clients/cloud/store.ts';
import { parseS3Credentials } from '#shared/clients/s3/place.ts';
import { isCertificate } from '#shared/runtime/certificate.ts';
import { messageOf } from '#shared/runtime/errors.ts';

export interface S3Target {
  readonly type: 's3';
  readonly endpoint: string;
  readonly region: string;
  readonly bucket: string;
  readonly pathStyle: boolean;
  /** Keys of its Secret, by which it is opened. */
  readonly secret: Readonly<Record<string, string>> | undefined;
  /** PEM, to trust besides the default certificates. */
  readonly ca: string | undefined;
}

export interface NfsTarget {
  readonly type: 'nfs';
  readonly server: string;
  readonly path: string;
}

export type BackupTarget = (S3Target | NfsTarget) & {
  /** Location without credentials: the same location has the same name. */
  readonly name: string;
  /** Seconds between scans for entries to restore; 0: once per target. */
  readonly refreshSeconds: number;
};

export type ReadTarget =
  | { readonly is: 'none' }
  | { readonly is: 'faulty'; readonly message: string }
  | { readonly is: 'set'; readonly target: BackupTarget };

/** The configuration in either form. */
export interface TargetText {
  /** Name of the object, for messages. */
  readonly where: string;
  readonly fields: Readonly<Record<string, unknown>>;
  /** Keys of the Secret. */
  readonly secret?: Readonly<Record<string, string>> | undefined;
}

const text = z
  .union([z.string(), z.number(), z.boolean()])
  .transform((value) => String(value).trim())
  .default('');

const Fields = z.object({
  type: text,
  endpoint: text,
  bucketName: text,
  bucketRegion: text,
  virtualHostedStyle: text,
  refreshIntervalInSeconds: text,
  cert: text,
  accessKeyId: text,
  secretAccessKey: text,
});
type Fields = z.infer<typeof Fields>;

const faulty = (where: string, message: string): ReadTarget => ({ is: 'faulty', message: `${where}: ${message}` });

const isBucket = (name: string): boolean => /^[a-z0-9][a-z0-9._-]{1,61}[a-z0-9]$/.test(name);

/** `undefined`: invalid. */
const secondsOf = ({ refreshIntervalInSeconds: given }: Fields): number | undefined =>
  given === '' ? 0 : /^\d{1,8}$/.test(given) ? Number(given) : undefined;

const endpointOf = ({ endpoint, bucketRegion }: Fields): string | undefined => {
  if (endpoint === '') return `https://s3.${bucketRegion || 'us-east-1'}.amazonaws.com`;
  const url = URL.canParse(endpoint) ? new URL(endpoint) : undefined;
  const isPlain = url?.username === '' && url.password === '' && url.search === '' && url.hash === '';
  return isPlain && /^https?:$/.test(url.protocol) ? endpoint.replace(/\/+$/, '') : undefined;
};

/** Throws InvalidInput for a Secret without credentials of any store. */
const secretOf = (fields: Fields, secret: TargetText['secret']): TargetText['secret'] => {
  const { accessKeyId, secretAccessKey } = fields;
  const isInline = accessKeyId !== '' || secretAccessKey !== '';
  const found = isInline ? { accessKeyId, secretKey: secretAccessKey } : secret;
  if (found !== undefined && !hasCloudKey(found)) parseS3Credentials(found);
  return found;
};

const refreshFault = 'refreshIntervalInSeconds must be a whole number of seconds';

const namesFault = (bucket: string, region: string): string | undefined => {
  if (!isBucket(bucket)) return `bucketName "${bucket}" is not a valid bucket name`;
  return /^[A-Za-z0-9-]+$/.test(region) ? undefined : `bucketRegion "${region}" is not a valid region name`;
};

const readS3 = (where: string, fields: Fields, secret: TargetText['secret']): ReadTarget => {
  const bucket = fields.bucketName;
  const region = fields.bucketRegion || 'us-east-1';
  const endpoint = endpointOf(fields);
  const refreshSeconds = secondsOf(fields);
  const ca = [fields.cert, secret?.['ca.crt'], secret?.['AWS_CERT']].find((pem) => pem);
  if (endpoint === undefined)
    return faulty(where, 'endpoint must be the http or https URL of the store, with nothing else in it');
  const names = namesFault(bucket, region);
  if (names !== undefined) return faulty(where, names);
  if (refreshSeconds === undefined) return faulty(where, refreshFault);
  if (ca !== undefined && !isCertificate(ca)) return faulty(where, 'cert contains no certificate in PEM form');
  const pathStyle = fields.virtualHostedStyle !== 'true';
  const name = `${endpoint}/${bucket}`;
  return {
    is: 'set',
    target: {
      type: 's3',
      name,
      endpoint,
      region,
      bucket,
      pathStyle,
      secret: secretOf(fields, secret),
      ca,
      refreshSeconds,
    },
  };
};

const readNfs = (where: string, fields: Fields): ReadTarget => {
  const [, server, written] = /^(?:nfs:\/\/)?(\[[0-9a-fA-F:]+\]|[^:/\s]+):(\/(?!\/)\S*)$/.exec(fields.endpoint) ?? [];
  const refreshSeconds = secondsOf(fields);
  // The same location has the same name.
  const path = written?.replace(/(?!^)\/+$/, '');
  if (server === undefined || path === undefined || [server, ...path.split('/')].some((part) => /^\.\.?$/.test(part)))
    return faulty(where, 'endpoint of an NFS export is written nfs://<server>:/<path>');
  if (refreshSeconds === undefined) return faulty(where, refreshFault);
  return { is: 'set', target: { type: 'nfs', name: `nfs://${server}:${path}`, server, path, refreshSeconds } };
};

/** Never throws: an invalid configuration is `faulty` with a message that contains no credential. */
export const readTarget = ({ where, fields: given, secret }: TargetText): ReadTarget => {
  const parsed = Fields.safeParse(given);
  if (!parsed.success) return faulty(where, 'its fields must be texts');
  const fields = parsed.data;
  if (fields.type === '' && fields.endpoint === '' && fields.bucketName === '') return { is: 'none' };
  try {
    if (fields.type === 's3') return readS3(where, fields, secret);
    if (fields.type === 'nfs') return readNfs(where, fields);
    return faulty(where, `type "${fields.type}" is not known; it is s3 or nfs`);
  } catch (error) {
    return faulty(where, messageOf(error));
  }
};

/** `value` of Harvester's setting, JSON or empty. */
export const readSettingValue = (value: string | undefined, secret: TargetText['secret']): ReadTarget => {
  const where = 'setting backup-target';
  if (value === undefined || value.trim() === '') return { is: 'none' };
  try {
    const fields: unknown = JSON.parse(value);
    if (typeof fields === 'object' && fields !== null && !Array.isArray(fields))
      return readTarget({ where, fields: fields as TargetText['fields'], secret });
  } catch {
    // The content is not repeated: it may contain a key.
  }
  return faulty(where, 'its value is not a JSON object');
};
