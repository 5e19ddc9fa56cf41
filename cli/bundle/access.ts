// Registries and object stores as the command line reaches them: with files of this machine, or with the Secret and certificates of a cron.
import { readFile } from 'node:fs/promises';
import { type OptionSpec, type Values, listOf, textOf } from '#cli/command.ts';
import { configMaps, secretTexts, secrets } from '#shared/api/foreign/core.ts';
import { createAddressPolicy } from '#shared/clients/http/address.ts';
import { type HttpClient, createHttpClient } from '#shared/clients/http/client.ts';
import type { KubeClient } from '#shared/clients/kube/client.ts';
import { type RegistryClient, createRegistryClient } from '#shared/clients/registry/client.ts';
import { type SecretData, findCredentials } from '#shared/clients/registry/credentials.ts';
import { type RegistryPusher, createRegistryPusher } from '#shared/clients/registry/push.ts';
import type { Reference } from '#shared/clients/registry/reference.ts';
import { createRegistryPace } from '#shared/clients/registry/refusal.ts';
import { type S3Client, createS3Client } from '#shared/clients/s3/client.ts';
import { parseS3Credentials } from '#shared/clients/s3/place.ts';
import { InvalidInput, NotFound, messageOf } from '#shared/runtime/errors.ts';

export const accessOptions = {
  'registry-config': { type: 'string', value: 'FILE', help: 'credentials of registries, as in ~/.docker/config.json' },
  ca: { type: 'string', value: 'FILE', help: 'certificates to trust besides the well-known ones' },
  'plain-http': { type: 'boolean', help: 'reach the registry without TLS' },
  endpoint: { type: 'string', value: 'URL', help: 'of the object store of an s3:// target' },
  credentials: {
    type: 'string',
    value: 'FILE',
    help: 'of the object store, as in ~/.aws/credentials: aws_access_key_id = …, aws_secret_access_key = …',
  },
} as const satisfies Readonly<Record<string, OptionSpec>>;

/** Who calls may connect anywhere from here. */
const everywhere = ['0.0.0.0/0', '::/0'];

/** Milliseconds without a byte before a connection is given up. */
const idleMs = 60_000;

const readNamed = async (option: string, path: string): Promise<Buffer> => {
  try {
    return await readFile(path);
  } catch (error) {
    throw new InvalidInput(`--${option} ${path} cannot be read: ${messageOf(error)}`, [], { cause: error });
  }
};

/** Throws InvalidInput. */
export const readOptionFile = async (values: Values, option: string): Promise<Buffer | undefined> => {
  const path = textOf(values, option);
  return path === undefined ? undefined : readNamed(option, path);
};

/** Of an option that may be given several times. Throws InvalidInput. */
export const readOptionFiles = (values: Values, option: string): Promise<readonly string[]> =>
  Promise.all(listOf(values, option).map(async (path) => (await readNamed(option, path)).toString('utf8')));

/** What a cron names in its namespace. */
export interface CronAccess {
  readonly secretName?: string | undefined;
  readonly caName?: string | undefined;
}

interface ClusterSide {
  readonly kube: Pick<KubeClient, 'get'>;
  readonly namespace: string;
}

const secretOf = async (values: Values, { secretName }: CronAccess, side?: ClusterSide) => {
  const file = await readOptionFile(values, 'registry-config');
  if (file !== undefined) return { '.dockerconfigjson': file.toString('utf8') } satisfies SecretData;
  if (secretName === undefined || side === undefined) return undefined;
  const found = await side.kube.get(secrets, { namespace: side.namespace, name: secretName });
  if (found === undefined) throw new NotFound(`Secret ${secretName} does not exist: give --registry-config`);
  return secretTexts(found);
};

const caOf = async (values: Values, { caName }: CronAccess, side?: ClusterSide): Promise<string | undefined> => {
  const file = await readOptionFile(values, 'ca');
  if (file !== undefined || caName === undefined || side === undefined) return file?.toString('utf8');
  const found = await side.kube.get(configMaps, { namespace: side.namespace, name: caName });
  return Object.values(found?.data ?? {}).join('\n');
};

const openHttp = (ca: string | undefined): HttpClient =>
  createHttpClient({ isRefused: createAddressPolicy(everywhere), idleMs, ca });

export interface OpenRegistry {
  readonly client: RegistryClient;
  readonly pusher: RegistryPusher;
  readonly close: () => Promise<void>;
}

interface Opening {
  readonly values: Values;
  readonly signal: AbortSignal;
  readonly access?: CronAccess;
  readonly side?: ClusterSide;
}

/** One repository. Makes no connection. */
export const openRegistry = async (
  image: Pick<Reference, 'host' | 'repository'>,
  { values, signal, access = {}, side }: Opening,
): Promise<OpenRegistry> => {
  const secret = await secretOf(values, access, side);
  const http = openHttp(await caOf(values, access, side));
  const options = {
    http,
    host: image.host,
    credentials: secret && findCredentials(secret, image),
    plainHttp: values['plain-http'] === true,
    plainHosts: values['plain-http'] === true ? [image.host] : [],
    pace: createRegistryPace(Date.now),
    signal,
  };
  return {
    client: createRegistryClient(options),
    pusher: createRegistryPusher(image, options),
    close: () => http.close(),
  };
};

/** `name = value`, of the first section. */
const readPairs = (text: string): Readonly<Record<string, string>> => {
  const pairs: Record<string, string> = {};
  for (const line of text.split('\n')) {
    const [, key = '', value = ''] = /^\s*(?:export\s+)?(\w+)\s*=\s*(.*?)\s*$/.exec(line) ?? [];
    if (key !== '') pairs[key] ??= value;
  }
  return pairs;
};

export const openBucket = async (values: Values): Promise<{ s3: S3Client; close: () => Promise<void> }> => {
  const endpoint = textOf(values, 'endpoint');
  if (endpoint !== undefined && !/^https?:\/\/./.test(endpoint))
    throw new InvalidInput(`--endpoint is the URL of an object store, not ${endpoint}`);
  const file = await readOptionFile(values, 'credentials');
  const credentials = file && parseS3Credentials(readPairs(file.toString('utf8')));
  const http = openHttp(await caOf(values, {}));
  const s3 = createS3Client({ http, endpoint, region: 'us-east-1', pathStyle: endpoint !== undefined, credentials });
  return { s3, close: () => http.close() };
};
