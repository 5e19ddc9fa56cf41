// Sources that a Job fetches from a server: their fields, the spec of the worker, and the Secrets and ConfigMaps to mount.
import { type MirrorAccess, mirrorsOf, objectUrl } from '#shared/clients/http/mirrors.ts';
import { createHash } from 'node:crypto';
import { type WorkloadIdentity, audienceOf, formatIdentity } from '#shared/clients/cloud/identity.ts';
import type { PodVolume } from '#shared/api/foreign/core.ts';
import { type RegistryAccess, placesOf } from '#shared/clients/registry/mirrors.ts';
import { type Reference, parseReference, readReference } from '#shared/clients/registry/reference.ts';
import type { PopulateSettings } from '#shared/populate/settings.ts';
import { type Credential, type JobRow, type SourceMounts, downloading } from '#shared/populate/sources/row.ts';
import { InvalidInput } from '#shared/runtime/errors.ts';
import type { Mounted } from '#shared/transfer/spec.ts';

const secretPath = '/source-secret';
const bundlePath = '/source-ca';
const headersPath = '/source-headers';
const identityPath = '/source-identity';

/** Access to a source. Secrets and ConfigMaps are in the owner's namespace and mounted by name: only the kubelet reads them. */
export interface SourceAccess {
  /** Secret with credentials: accessKeyId and secretKey, or other keys of the type of source. */
  readonly secretName?: string | undefined;
  /** ConfigMap with PEM bundles to trust besides the system's, one in every key. */
  readonly bundleName?: string | undefined;
  /** Of the pod's service account, in place of a Secret. */
  readonly identity?: WorkloadIdentity | undefined;
  /** That service account, if it is not the one of the installation: another one has other rights. */
  readonly account?: string | undefined;
  /** `Name: value`, sent only to the origin of the source. */
  readonly headers?: readonly string[] | undefined;
  /** Secrets with one such header in every key. */
  readonly headerSecrets?: readonly string[] | undefined;
}

export interface HttpFile extends SourceAccess {
  readonly url: string;
}

export interface RegistryImage extends SourceAccess {
  readonly url: string;
  readonly architecture?: string | undefined;
}

/** An object of a store that the user specifies. */
export interface S3Object extends SourceAccess {
  readonly endpoint: string;
  readonly region: string;
  readonly bucket: string;
  readonly key: string;
  /** `endpoint/bucket/key` (default), or else `bucket.endpoint/key`. */
  readonly pathStyle?: boolean | undefined;
  /** PEM certificates to trust, if no Secret or ConfigMap has them. */
  readonly caBundle?: string | undefined;
}

/** An object of the installation's object store. */
export interface ObjectLocation {
  readonly bucket: string;
  readonly key: string;
}

const accessOf = ({ secretName, bundleName, identity }: SourceAccess) => ({
  ...(identity === undefined ? {} : { workload: { identity, tokenFile: `${identityPath}/token` } }),
  ...(secretName === undefined ? {} : { secretDir: secretPath, secretName }),
  ...(bundleName === undefined ? {} : { ca: { dir: bundlePath, name: bundleName } }),
});

/** Which of them it has. */
export const credentialsOf = ({
  secretName,
  bundleName,
  identity,
}: SourceAccess & { readonly type: string }): readonly Credential[] => [
  ...(secretName === undefined ? [] : (['secretRef'] as const)),
  ...(bundleName === undefined ? [] : (['certConfigMap'] as const)),
  ...(identity === undefined ? [] : (['workloadIdentity'] as const)),
];

/** Names of parameters with which a URL is signed, or shows who asks. */
const isShown = (name: string): boolean => /sig|token|key|secret|password|credential|auth/i.test(name);

/** Also what is in the URL itself: user information and signatures. */
const secretOfUrl = (text: string | undefined): readonly string[] => {
  const url = text === undefined ? null : URL.parse(text);
  const { username = '', password = '', search = '', searchParams = new URLSearchParams() } = url ?? {};
  const signature = [...searchParams.keys()].some(isShown) ? search : '';
  return [username, password, signature].filter((part) => part !== '');
};

/**
 * Identifies what its server is shown for the bytes, within a namespace: only who shows the same may be given them by others. Empty: they are for
 * everybody who can name them.
 */
export const rightOf = ({
  url,
  secretName,
  identity,
  account,
  headers = [],
  headerSecrets = [],
}: SourceAccess & { readonly type: string; readonly url?: string }): string => {
  const own = identity === undefined ? [] : [formatIdentity(identity), account];
  const shown = [secretName, ...own].filter((one) => one !== undefined);
  const parts = [shown, headers, headerSecrets, secretOfUrl(url)];
  if (parts.every(({ length }) => length === 0)) return '';
  return ` with ${createHash('sha256').update(JSON.stringify(parts)).digest('hex').slice(0, 16)}`;
};

const headersOf = ({
  headers = [],
  headerSecrets = [],
}: SourceAccess): { secretHeaders?: string[]; headerSecrets?: Mounted[] } => ({
  ...(headers.length === 0 ? {} : { secretHeaders: [...headers] }),
  ...(headerSecrets.length === 0
    ? {}
    : { headerSecrets: headerSecrets.map((name, index) => ({ dir: `${headersPath}/${index}`, name })) }),
});

interface MountedVolume {
  readonly path: string;
  readonly volume: PodVolume;
}

/** Optional: a running pod reports at once what is missing; a pod that cannot start only causes an event. */
const volumesOf = ({
  secretName,
  bundleName,
  identity,
  headerSecrets = [],
}: SourceAccess): readonly MountedVolume[] => [
  ...(secretName === undefined ? [] : [secret('source-secret', secretPath, secretName)]),
  ...(bundleName === undefined
    ? []
    : [{ path: bundlePath, volume: { name: 'source-ca', configMap: { name: bundleName, optional: true } } }]),
  ...(identity === undefined ? [] : [{ path: identityPath, volume: podToken(audienceOf(identity)) }]),
  ...headerSecrets.map((name, index) => secret(`source-headers-${index}`, `${headersPath}/${index}`, name)),
];

const secret = (name: string, path: string, secretName: string): MountedVolume => ({
  path,
  volume: { name, secret: { secretName, optional: true } },
});

/** The kubelet renews it at 80 % of its lifetime. */
const podToken = (audience: string): PodVolume => ({
  name: 'source-identity',
  projected: { sources: [{ serviceAccountToken: { audience, expirationSeconds: 3600, path: 'token' } }] },
});

const mountsOf = (access: SourceAccess): SourceMounts => {
  const mounted = volumesOf(access);
  return {
    volumes: mounted.map(({ volume }) => volume),
    mounts: mounted.map(({ volume, path }) => ({ name: volume.name, mountPath: path, readOnly: true })),
    devices: [],
  };
};

/** An invalid URL has no mirrors: the worker refuses it. */
const mirrorUrls = (url: string, settings: MirrorAccess): readonly string[] => {
  const parsed = URL.parse(url);
  return parsed === null ? [] : mirrorsOf(parsed, settings);
};

const mirrorsIn = (url: string, settings: MirrorAccess): { mirrors?: string[] } => {
  const mirrors = mirrorUrls(url, settings);
  return mirrors.length === 0 ? {} : { mirrors: [...mirrors] };
};

const hostIn = (url: string): string | undefined => URL.parse(url)?.host;

const fetched = { isServer: true, arrives: 'fetched', moving: downloading, mounts: mountsOf } as const;

export const http: JobRow<HttpFile> = {
  ...fetched,
  takes: ['secretRef', 'certConfigMap', 'workloadIdentity'],
  name: 'a file of an HTTP server',
  isFile: true,
  hostOf: ({ url }, { settings }) => hostIn(mirrorUrls(url, settings)[0] ?? url),
  spec: (source, { settings }) => ({
    type: 'http',
    url: source.url,
    ...mirrorsIn(source.url, settings),
    ...accessOf(source),
    ...headersOf(source),
  }),
};

export const registry: JobRow<RegistryImage> = {
  ...fetched,
  takes: ['secretRef', 'certConfigMap'],
  name: 'a containerDisk of a registry',
  isFile: false,
  pinOf: ({ url, architecture = '' }) => {
    const reference = readReference(url);
    const digest = 'value' in reference ? reference.value.digest : undefined;
    return digest && `registry ${digest} ${architecture}`;
  },
  // The first place, if mirrors are configured.
  hostOf: ({ url }, { settings }) => placesOf(parseReference(url), settings)[0]?.host,
  // Where a registry is accessed, and whether without TLS, is a decision of the operator, not of the user.
  spec: (source, { settings }) => ({
    type: 'registry',
    url: source.url,
    ...(source.architecture === undefined ? {} : { architecture: source.architecture }),
    ...placesIn(parseReference(source.url), settings),
    ...accessOf(source),
  }),
};

const placesIn = (image: Reference, settings: RegistryAccess) => {
  const { plainRegistries } = settings;
  const places = placesOf(image, settings);
  const [only] = places;
  const isItself = places.length === 1 && only?.host === image.host && only.repository === image.repository;
  return {
    ...(isItself ? (only.plainHttp ? { plainHttp: true } : {}) : { places: [...places] }),
    ...(plainRegistries.length === 0 ? {} : { plainHosts: [...plainRegistries] }),
  };
};

type StorePlace = Pick<S3Object, 'endpoint' | 'bucket' | 'key'>;

const objectAt = (place: StorePlace): string | undefined =>
  URL.canParse(place.endpoint) ? objectUrl(place).href : undefined;

const mirrorsOfObject = (place: StorePlace, settings: MirrorAccess) => mirrorsIn(objectAt(place) ?? '', settings);

const hostOfObject = (place: StorePlace, settings: MirrorAccess): string | undefined =>
  hostIn(mirrorUrls(objectAt(place) ?? '', settings)[0] ?? place.endpoint);

export const s3: JobRow<S3Object> = {
  ...fetched,
  takes: ['secretRef', 'certConfigMap', 'workloadIdentity'],
  name: 'an object of an S3-compatible store',
  isFile: true,
  hostOf: (place, { settings }) => hostOfObject(place, settings),
  spec: ({ endpoint, region, pathStyle = true, bucket, key, caBundle, ...access }, { settings }) => ({
    type: 's3',
    endpoint,
    region,
    pathStyle,
    bucket,
    key,
    ...mirrorsOfObject({ endpoint, bucket, key }, settings),
    ...(caBundle === undefined ? {} : { caBundle }),
    ...accessOf(access),
  }),
};

const storeOf = ({ objectStore }: PopulateSettings): NonNullable<PopulateSettings['objectStore']> => {
  if (objectStore === undefined) throw new InvalidInput('this installation has no object store');
  return objectStore;
};

export const object: JobRow<ObjectLocation> = {
  ...fetched,
  takes: [],
  name: "an object of the installation's object store",
  isFile: true,
  hostOf: (place, { settings }) => hostOfObject({ ...storeOf(settings), ...place }, settings),
  spec: ({ bucket, key }, { settings }) => {
    const { secretName, ...place } = storeOf(settings);
    const mirrors = mirrorsOfObject({ ...place, bucket, key }, settings);
    return { type: 's3', ...place, bucket, key, ...mirrors, ...accessOf({ secretName }) };
  },
  mounts: (_object, { settings: { objectStore } }) => mountsOf({ secretName: objectStore?.secretName }),
};
