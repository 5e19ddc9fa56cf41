// Who signed a version of a golden image: reads the keys, looks the signature up where the source is, and decides. The digest that is asked about
// is the one that is published: it is no statement about any other.
import { askPlaces } from '#shared/clients/http/mirrored.ts';
import { type MirrorAccess, mirrorsOf } from '#shared/clients/http/mirrors.ts';
import { type HostHealth, createHostHealth } from '#shared/clients/http/health.ts';
import { configMaps } from '#shared/api/foreign/core.ts';
import type { HttpClient } from '#shared/clients/http/client.ts';
import { toDestination } from '#shared/clients/http/redirect.ts';
import { type RegistryPace, createRegistryPace } from '#shared/clients/registry/refusal.ts';
import { isDigest } from '#shared/clients/registry/reference.ts';
import { S3Failure } from '#shared/clients/s3/errors.ts';
import { s3PlaceOf } from '#shared/clients/s3/place.ts';
import { parseRetryAfter } from '#shared/clients/http/refusal.ts';
import { readUpTo } from '#shared/runtime/read-bytes.ts';
import {
  type SourceClient,
  type OpenOptions,
  openHttp,
  openRegistry,
  openStore,
  secretHeadersOf,
} from '#shared/golden/poll/open.ts';
import { judgeOf, verifyImage } from '#shared/golden/signature/cosign/cosign.ts';
import { type FetchFile, type FetchedFile, mostFileBytes, verifyFile } from '#shared/golden/signature/files.ts';
import { formatOf } from '#shared/golden/signature/keys.ts';
import {
  keysMissing,
  type ReadConfigMap,
  refuse,
  type SignatureOutcome,
  type SignatureRefusal,
  type SignatureRequest,
  unreachable,
  type VerifySignature,
} from './outcome.ts';
import type { HttpCronSource, RegistryCronSource, S3CronSource } from '#shared/golden/source.ts';
import { AppError, InvalidInput, Unavailable, messageOf } from '#shared/runtime/errors.ts';
import { redactUrl } from '#shared/runtime/redact.ts';

export interface SignatureDeps extends OpenOptions {
  readonly pace: RegistryPace;
  readonly health: HostHealth;
  /** Milliseconds since the epoch. */
  readonly now: () => number;
}

/** Verifies for policies, with one pace for all requests to a registry. */
export const createVerifier = (options: OpenOptions & Pick<SignatureDeps, 'now'>): VerifySignature => {
  const deps = { ...options, pace: createRegistryPace(options.now), health: createHostHealth(options.now) };
  return (request) => verifySignature(deps, request);
};

/** Never throws for what sources and signatures are. */
export const verifySignature = async (deps: SignatureDeps, request: SignatureRequest): Promise<SignatureOutcome> => {
  const unsuitable = whyUnsuitable(request);
  if (unsuitable !== undefined) return unsuitable;
  try {
    return await judge(deps, request);
  } catch (error) {
    request.signal?.throwIfAborted();
    if (error instanceof InvalidInput) return refuse('InvalidPolicy', messageOf(error));
    if (error instanceof AppError) return unreachable(error);
    throw error;
  }
};

const whyUnsuitable = ({ source, rule, digest }: SignatureRequest): SignatureRefusal | undefined => {
  const { type } = source;
  if (type === 'pvc')
    return refuse(
      'InvalidPolicy',
      'a volume has no signature: take the demand for a signature out, or follow the image that the volume was made from',
    );
  if ((rule.cosign !== undefined) !== (type === 'registry')) {
    const fitting = type === 'registry' ? 'cosign' : 'gpg or minisign';
    return refuse(
      'InvalidPolicy',
      `an image that comes over ${type} is verified by ${fitting}: name that in signature`,
    );
  }
  if (!isDigest(digest))
    return refuse(
      'DigestNotSigned',
      `which bytes ${digest} stands for is known once they are fetched: name the checksum file in checksumURL of the source`,
    );
  return undefined;
};

const judge = async (deps: SignatureDeps, request: SignatureRequest): Promise<SignatureOutcome> => {
  const { source, namespace, keysNamespace = namespace } = request;
  if (source.type === 'pvc') return refuse('InvalidPolicy', 'a volume has no signature');
  const read: ReadConfigMap = async (name) => {
    const found = await deps.kube.get(configMaps, { namespace: keysNamespace, name });
    if (found !== undefined) return found;
    throw new InvalidInput(keysMissing(name, keysNamespace));
  };
  const http = await openHttp(deps, namespace, source);
  try {
    return source.type === 'registry'
      ? await judgeImage(deps, request, source, { http, read })
      : await judgeFile(deps, request, source, { http, read });
  } finally {
    await http.close();
  }
};

interface Opened {
  readonly http: SourceClient;
  readonly read: ReadConfigMap;
}

const judgeImage = async (
  deps: SignatureDeps,
  { namespace, rule, digest, sourceDigest, signal }: SignatureRequest,
  source: RegistryCronSource,
  { http, read }: Opened,
): Promise<SignatureOutcome> => {
  const judge = await judgeOf(rule.cosign ?? {}, read);
  if ('is' in judge) return judge;
  const registry = await openRegistry(deps, source, { namespace, http, signal });
  const { attestations } = rule.cosign ?? {};
  return verifyImage(registry, { image: source.image, digest, sourceDigest, attestations }, judge);
};

const judgeFile = async (
  deps: SignatureDeps,
  request: SignatureRequest,
  source: HttpCronSource | S3CronSource,
  { http, read }: Opened,
): Promise<SignatureOutcome> => {
  const { rule, digest } = request;
  const places = rule.gpg ?? rule.minisign ?? { keys: { configMap: '' } };
  const format = await formatOf(rule, read, deps.now);
  if ('is' in format) return format;
  const fetch =
    source.type === 's3'
      ? await fetchFromStore(deps, request, source, http)
      : fetchOverHttp(
          http,
          { ...request, ...deps, access: await deps.registries() },
          source.url,
          await secretHeadersOf(deps, source, request.namespace),
        );
  const checksumUrl = source.type === 'http' ? source.checksumUrl : undefined;
  return verifyFile(fetch, { url: source.url, checksumUrl, digest }, places, format);
};

const bounded = async (body: AsyncIterable<Buffer>): Promise<FetchedFile> => {
  const { bytes, isCut } = await readUpTo(body, mostFileBytes);
  return isCut ? { is: 'too-large' } : { is: 'file', bytes };
};

/** Stores that may not be listed answer 403 for what they do not have. */
const absent = new Set([401, 403, 404, 410]);

type FileAccess = Pick<SignatureRequest, 'signal'> &
  Pick<SignatureDeps, 'now' | 'health'> & { readonly access: MirrorAccess };

const fetchOverHttp =
  (
    client: HttpClient,
    { signal, now, health, access }: FileAccess,
    imageUrl: string,
    secretHeaders: Readonly<Record<string, string>>,
  ): FetchFile =>
  async (url) => {
    // Credentials are for the image's origin; the checksums may lie elsewhere.
    const origin = toDestination(url, url.origin === new URL(imageUrl).origin ? secretHeaders : {});
    const mirrors = mirrorsOf(origin.url, access);
    const { response } = await askPlaces(client, { origin, headers: {}, mirrors, health, ...(signal && { signal }) });
    const { status, headers } = response;
    if (status === 200) return bounded(response.body);
    response.discard();
    if (absent.has(status)) return { is: 'absent', status };
    const seconds = parseRetryAfter(headers['retry-after'], now());
    const asked = seconds === undefined ? {} : { retryAfterSeconds: seconds };
    throw new Unavailable(`${redactUrl(url.href)} answered ${status}`, asked);
  };

/** What lies in the same store is asked for with the credentials of the image; whatever else, like any file. */
const fetchFromStore = async (
  deps: SignatureDeps,
  request: SignatureRequest,
  source: S3CronSource,
  http: SourceClient,
): Promise<FetchFile> => {
  const { namespace, signal } = request;
  const store = await openStore(deps, source, { namespace, http });
  const elsewhere = fetchOverHttp(http, { ...deps, signal, access: await deps.registries() }, source.url, {});
  return async (url) => {
    const place = s3PlaceOf(url);
    if (place === undefined || url.origin !== new URL(source.url).origin) return elsewhere(url);
    try {
      const { body } = await store.get({ ...place, signal });
      return await bounded(body);
    } catch (error) {
      const isAbsent = error instanceof S3Failure && /^(ObjectNotFound|BucketNotFound|Denied)$/.test(error.code);
      if (isAbsent) return { is: 'absent', status: error.code === 'Denied' ? 403 : 404 };
      throw error;
    }
  };
};
