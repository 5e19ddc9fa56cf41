// Makes the source that a spec names: the one place that knows all kinds of sources.
import { createAddressPolicy } from '#shared/clients/http/address.ts';
import { type HttpClient, createHttpClient } from '#shared/clients/http/client.ts';
import { createRegistryClient } from '#shared/clients/registry/client.ts';
import { type Credentials, findCredentials } from '#shared/clients/registry/credentials.ts';
import { createRegistryPace } from '#shared/clients/registry/pace.ts';
import { type Reference, parseReference } from '#shared/clients/registry/reference.ts';
import { createS3Client } from '#shared/clients/s3/client.ts';
import { parseS3Credentials } from '#shared/clients/s3/credentials.ts';
import { redactUrl } from '#shared/runtime/redact.ts';
import { TransferError } from '#shared/transfer/fault.ts';
import { readBundle, readHeaders, readSecret } from '#shared/transfer/source/access.ts';
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

const parseUrl = (text: string): URL => {
  const url = URL.canParse(text) ? new URL(text) : undefined;
  if (url?.protocol === 'http:' || url?.protocol === 'https:') return url;
  throw new TransferError('InvalidSpec', `"${redactUrl(text)}" is not an http or https URL`);
};

const clientFor = (spec: TransferSpec, ca: string | undefined): HttpClient =>
  createHttpClient({
    isRefused: createAddressPolicy(spec.allowedAddresses),
    idleMs: spec.limits.idleSeconds * 1000,
    ca,
  });

const openHttp = async (source: HttpSource, spec: TransferSpec, context: SourceContext): Promise<Source> => {
  const url = parseUrl(source.url);
  const secretHeaders = await readHeaders(source);
  const client = clientFor(spec, await readBundle(source.ca));
  return createHttpSource({ client, url, secretHeaders, retries: spec.limits.retries, ...context });
};

/** Architectures as registries name them, by what Node calls this machine's. */
const architectures: Readonly<Record<string, string>> = { x64: 'amd64', ia32: '386' };

const readCredentials = async (source: RegistrySource, image: Reference): Promise<Credentials | undefined> => {
  const secret = await readSecret(source, { of: 'the registry', hint: 'the type kubernetes.io/dockerconfigjson' });
  return secret === undefined ? undefined : findCredentials(secret, image);
};

const openRegistry = async (source: RegistrySource, spec: TransferSpec, context: SourceContext): Promise<Source> => {
  const image = parseReference(source.url);
  const { ca, plainHttp, architecture = architectures[process.arch] ?? process.arch } = source;
  const credentials = await readCredentials(source, image);
  const http = clientFor(spec, await readBundle(ca));
  const pace = createRegistryPace(Date.now);
  const client = createRegistryClient({ http, host: image.host, credentials, plainHttp, pace, signal: context.signal });
  const close = () => http.close();
  return createRegistrySource({ client, image, architecture, retries: spec.limits.retries, close, ...context });
};

const openS3 = async (source: S3Source, spec: TransferSpec, context: SourceContext): Promise<Source> => {
  const { endpoint, region, pathStyle, bucket, key } = source;
  if (endpoint !== undefined) parseUrl(endpoint);
  const secret = await readSecret(source, { of: 'the object store', hint: 'the keys accessKeyId and secretKey' });
  const credentials = secret === undefined ? undefined : parseS3Credentials(secret);
  const http = clientFor(spec, (await readBundle(source.ca)) ?? secret?.['ca.crt']);
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
