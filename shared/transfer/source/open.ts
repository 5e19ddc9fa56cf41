// Makes the source that a spec names: the one place that knows all kinds of sources.
import { readFile, readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { createAddressPolicy } from '#shared/clients/http/address.ts';
import { type HttpClient, createHttpClient } from '#shared/clients/http/client.ts';
import { createRegistryClient } from '#shared/clients/registry/client.ts';
import { type Credentials, findCredentials } from '#shared/clients/registry/credentials.ts';
import { createRegistryPace } from '#shared/clients/registry/pace.ts';
import { type Reference, parseReference } from '#shared/clients/registry/reference.ts';
import { createS3Client } from '#shared/clients/s3/client.ts';
import { parseS3Credentials } from '#shared/clients/s3/credentials.ts';
import { messageOf } from '#shared/runtime/errors.ts';
import { redactUrl } from '#shared/runtime/redact.ts';
import { TransferError } from '#shared/transfer/fault.ts';
import { createHttpSource } from '#shared/transfer/source/http/create.ts';
import { createRegistrySource } from '#shared/transfer/source/registry/create.ts';
import { createBlankSource } from '#shared/transfer/source/blank.ts';
import { openVolume } from '#shared/transfer/source/volume.ts';
import { createS3Source } from '#shared/transfer/source/s3/create.ts';
import type { Source } from '#shared/transfer/source/source.ts';
import type { HttpSource, RegistrySource, S3Source, TransferSpec } from '#shared/transfer/spec.ts';

export interface SourceContext {
  readonly signal: AbortSignal;
  /** Told of each transient fault before it is waited out. */
  readonly onRetry: (error: unknown, waitMs: number) => void;
}

const headerName = /^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/;

/** The keys of a mounted Secret. Names that begin with two dots belong to the way Kubernetes mounts them. */
const readSecret = async (directory: string): Promise<Record<string, string>> => {
  const data: Record<string, string> = {};
  for (const name of await readdir(directory)) {
    if (!name.startsWith('..')) data[name] = await readFile(join(directory, name), 'utf8');
  }
  return data;
};

const readSecretHeaders = async (directory: string | undefined): Promise<Record<string, string>> => {
  if (directory === undefined) return {};
  const headers: Record<string, string> = {};
  for (const [name, content] of Object.entries(await readSecret(directory))) {
    const value = content.trim();
    if (!headerName.test(name) || /[\r\n\0]/.test(value))
      throw new TransferError('InvalidSpec', `"${name}" in the header secret is no HTTP header`);
    headers[name.toLowerCase()] = value;
  }
  return headers;
};

/** A secret or bundle that is not there may appear (mounted late, created late). */
const reading = async <T>(what: string, read: () => Promise<T>): Promise<T> => {
  try {
    return await read();
  } catch (error) {
    if (error instanceof TransferError) throw error;
    throw new TransferError('SourceForbidden', `cannot read the ${what}: ${messageOf(error)}`, {
      cause: error,
      retryable: true,
    });
  }
};

const parseUrl = (text: string): URL => {
  const url = URL.canParse(text) ? new URL(text) : undefined;
  if (url?.protocol === 'http:' || url?.protocol === 'https:') return url;
  throw new TransferError('InvalidSpec', `"${redactUrl(text)}" is not an http or https URL`);
};

const readBundle = async (caFile: string | undefined): Promise<string | undefined> =>
  caFile === undefined ? undefined : reading('CA bundle of the source', () => readFile(caFile, 'utf8'));

const clientFor = (spec: TransferSpec, ca: string | undefined): HttpClient =>
  createHttpClient({
    isRefused: createAddressPolicy(spec.allowedAddresses),
    idleMs: spec.limits.idleSeconds * 1000,
    ca,
  });

const openHttp = async (source: HttpSource, spec: TransferSpec, context: SourceContext): Promise<Source> => {
  const url = parseUrl(source.url);
  const { secretHeadersDir, caFile } = source;
  const secretHeaders = await reading('headers of the source', () => readSecretHeaders(secretHeadersDir));
  const client = clientFor(spec, await readBundle(caFile));
  return createHttpSource({ client, url, secretHeaders, retries: spec.limits.retries, ...context });
};

/** Architectures as registries name them, by what Node calls this machine's. */
const architectures: Readonly<Record<string, string>> = { x64: 'amd64', ia32: '386' };

const readCredentials = async (secretDir: string | undefined, image: Reference): Promise<Credentials | undefined> => {
  if (secretDir === undefined) return undefined;
  return findCredentials(await reading('credentials of the registry', () => readSecret(secretDir)), image);
};

const openRegistry = async (source: RegistrySource, spec: TransferSpec, context: SourceContext): Promise<Source> => {
  const image = parseReference(source.url);
  const { secretDir, caFile, plainHttp, architecture = architectures[process.arch] ?? process.arch } = source;
  const credentials = await readCredentials(secretDir, image);
  const http = clientFor(spec, await readBundle(caFile));
  const pace = createRegistryPace(Date.now);
  const client = createRegistryClient({ http, host: image.host, credentials, plainHttp, pace, signal: context.signal });
  const close = () => http.close();
  return createRegistrySource({ client, image, architecture, retries: spec.limits.retries, close, ...context });
};

/** A Secret that is not there is mounted as an empty directory: it may still appear, and nothing is asked without it. */
const readStoreSecret = async ({ secretDir, secretName = 'with its credentials' }: S3Source) => {
  if (secretDir === undefined) return undefined;
  const secret = await reading('credentials of the object store', () => readSecret(secretDir));
  if (Object.keys(secret).length > 0) return secret;
  throw new TransferError(
    'SourceForbidden',
    `the Secret ${secretName} of the object store is missing in this namespace: create it with the keys accessKeyId and secretKey`,
    { retryable: true },
  );
};

const openS3 = async (source: S3Source, spec: TransferSpec, context: SourceContext): Promise<Source> => {
  const { endpoint, region, pathStyle, bucket, key } = source;
  if (endpoint !== undefined) parseUrl(endpoint);
  const secret = await readStoreSecret(source);
  const credentials = secret === undefined ? undefined : parseS3Credentials(secret);
  const http = clientFor(spec, secret?.['ca.crt']);
  const s3 = createS3Client({ http, endpoint, region, pathStyle, credentials });
  const close = () => http.close();
  return createS3Source({ s3, object: { bucket, key }, retries: spec.limits.retries, close, ...context });
};

/** Nothing is connected to yet. Throws TransferError, or InvalidInput for what the spec names. */
export const openSource = (spec: TransferSpec, context: SourceContext): Promise<Source> => {
  const { source } = spec;
  switch (source.type) {
    case 'http':
      return openHttp(source, spec, context);
    case 'registry':
      return openRegistry(source, spec, context);
    case 's3':
      return openS3(source, spec, context);
    case 'volume':
      return openVolume(source, context.signal);
    case 'blank':
      return Promise.resolve(createBlankSource());
  }
};
