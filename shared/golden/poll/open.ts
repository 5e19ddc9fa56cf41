// The way to a source with the access that its cron names: credentials and certificates of the cron's namespace, kept by nobody. Called by polls,
// and where signatures are looked up.
import type { MirrorAccess } from '#shared/clients/http/mirrors.ts';
import type { HostHealth } from '#shared/clients/http/health.ts';
import { configMaps, secretTexts, secrets } from '#shared/api/foreign/core.ts';
import { openObjectStore } from '#shared/clients/cloud/store.ts';
import { type CloudTools, createCloudClient } from '#shared/clients/cloud/authorized.ts';
import { type CloudEndpoints, cloudOf, publicClouds } from '#shared/clients/cloud/endpoints.ts';
import { createAddressPolicy } from '#shared/clients/http/address.ts';
import { type HttpClient, createHttpClient } from '#shared/clients/http/client.ts';
import type { Proxies } from '#shared/clients/http/proxy.ts';
import type { KubeClient } from '#shared/clients/kube/client.ts';
import type { RegistryClient } from '#shared/clients/registry/client.ts';
import { type SecretData, findCredentials } from '#shared/clients/registry/credentials.ts';
import { createMirroredClient } from '#shared/clients/registry/mirrored.ts';
import { type RegistryAccess, placesOf } from '#shared/clients/registry/mirrors.ts';
import type { RegistryPace } from '#shared/clients/registry/refusal.ts';
import type { S3Client } from '#shared/clients/s3/client.ts';
import { s3PlaceOf } from '#shared/clients/s3/place.ts';
import type { ServerReach } from '#shared/clients/http/reach.ts';
import type {
  CronSource,
  HttpCronSource,
  RegistryCronSource,
  S3CronSource,
  VolumeCronSource,
} from '#shared/golden/source.ts';
import { InvalidInput } from '#shared/runtime/errors.ts';

export interface OpenOptions {
  readonly kube: Pick<KubeClient, 'get'>;
  /** CIDRs that may be asked although they are loopback, link-local or metadata addresses. */
  readonly allowedAddresses: readonly string[];
  /** Where registries and files are fetched from. */
  readonly registries: () => Promise<RegistryAccess & MirrorAccess>;
  /** Servers that may be asked for a source; throws for a source that is not allowed. Left out: every server. */
  readonly reachOf?: ((namespace: string, source: CronSource) => Promise<ServerReach | undefined>) | undefined;
  /** Left out: everything is reached directly. */
  readonly proxies?: Proxies | undefined;
  /** Left out: the public ones. */
  readonly clouds?: CloudEndpoints | undefined;
}

/** Milliseconds without a byte before a source is given up. */
const idleMs = 15_000;

/** The client of a source. The opener closes it, which also closes the client for the token services of clouds. */
export interface SourceClient extends HttpClient {
  readonly tools: CloudTools;
}

/** Throws InvalidInput where the cron names what does not exist. */
export const openHttp = async (
  options: OpenOptions,
  namespace: string,
  source: Exclude<CronSource, VolumeCronSource>,
): Promise<SourceClient> => {
  const tools = toolsOf(options);
  const http = createHttpClient({
    isRefused: createAddressPolicy(options.allowedAddresses),
    idleMs,
    reach: await options.reachOf?.(namespace, source),
    ca: await readCa(options, namespace, source.caName),
    proxies: options.proxies,
  });
  const close = async () => void (await Promise.all([http.close(), tools.asks.close()]));
  if (source.type !== 'http' || source.secretName === undefined || !isOfCloud(options, source))
    return { get: (call) => http.get(call), close, tools };
  const { url, secretName } = source;
  const access = { secret: await readSecret(options, namespace, secretName), secretName, use: 'read' } as const;
  return { ...createCloudClient(http, new URL(url), access, tools), tools };
};

const toolsOf = ({ allowedAddresses, proxies, clouds }: OpenOptions): CloudTools => ({
  asks: createHttpClient({ isRefused: createAddressPolicy(allowedAddresses), idleMs, proxies }),
  now: Date.now,
  clouds,
});

const isOfCloud = ({ clouds = publicClouds }: OpenOptions, { url }: HttpCronSource): boolean =>
  cloudOf(new URL(url), clouds) !== undefined;

interface Opening {
  readonly namespace: string;
  readonly http: SourceClient;
  readonly signal?: AbortSignal | undefined;
}

export const openRegistry = async (
  options: OpenOptions & { readonly pace: RegistryPace; readonly health: HostHealth },
  { image, secretName }: RegistryCronSource,
  { namespace, http, signal }: Opening,
): Promise<RegistryClient> => {
  const secret = await readSecret(options, namespace, secretName);
  const access = await options.registries();
  return createMirroredClient({
    http,
    image,
    places: placesOf(image, access),
    secret,
    plainHosts: access.plainRegistries,
    pace: options.pace,
    health: options.health,
    signal,
  });
};

/** Headers for the origin of the file alone. */
export const secretHeadersOf = async (
  options: OpenOptions,
  source: HttpCronSource,
  namespace: string,
): Promise<Readonly<Record<string, string>>> => {
  const { url, secretName } = source;
  // The client itself has its access.
  if (isOfCloud(options, source)) return {};
  const secret = await readSecret(options, namespace, secretName);
  const credentials = secret && findCredentials(secret, { host: new URL(url).host, repository: '' });
  if (credentials === undefined) return {};
  const pair = `${credentials.username}:${credentials.password}`;
  return { authorization: `Basic ${Buffer.from(pair).toString('base64')}` };
};

export const openStore = async (
  options: OpenOptions,
  { url, secretName }: S3CronSource,
  { namespace, http }: Opening,
): Promise<S3Client> => {
  const secret = await readSecret(options, namespace, secretName);
  const { endpoint, region = 'us-east-1' } = s3PlaceOf(new URL(url)) ?? {};
  const access = { secret, secretName, use: 'read' } as const;
  return openObjectStore({ http, endpoint, region, pathStyle: true }, access, http.tools).s3;
};

const readSecret = async (
  { kube }: OpenOptions,
  namespace: string,
  name: string | undefined,
): Promise<SecretData | undefined> => {
  if (name === undefined) return undefined;
  const secret = await kube.get(secrets, { namespace, name });
  if (secret === undefined) throw new InvalidInput(`Secret ${namespace}/${name} of secretRef does not exist`);
  return secretTexts(secret);
};

const readCa = async ({ kube }: OpenOptions, namespace: string, name: string | undefined) => {
  if (name === undefined) return undefined;
  const bundle = await kube.get(configMaps, { namespace, name });
  if (bundle === undefined) throw new InvalidInput(`ConfigMap ${namespace}/${name} of certConfigMap does not exist`);
  return Object.values(bundle.data ?? {}).join('\n');
};
