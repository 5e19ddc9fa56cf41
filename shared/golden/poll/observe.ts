// One poll of a source, with the access its cron names. Made once at the edge; called by the tick and when a new cron is observed.
import { HttpFailure } from '#shared/clients/http/errors.ts';
import { isOfHost } from '#shared/clients/registry/mirrored.ts';
import { type RegistryAccess, placesOf } from '#shared/clients/registry/mirrors.ts';
import { askMirrorsOnly } from '#shared/clients/http/mirrored.ts';
import { type MirrorAccess, mirrorsOf } from '#shared/clients/http/mirrors.ts';
import { toDestination } from '#shared/clients/http/redirect.ts';
import { type HostHealth, createHostHealth } from '#shared/clients/http/health.ts';
import { grantFor, serviceAccountRequester } from '#shared/access/permissions.ts';
import { persistentVolumeClaims } from '#shared/api/foreign/core.ts';
import type { HttpClient } from '#shared/clients/http/client.ts';
import { type RegistryPace, createRegistryPace } from '#shared/clients/registry/refusal.ts';
import type { KubeClient } from '#shared/clients/kube/client.ts';
import type { S3Client } from '#shared/clients/s3/client.ts';
import { s3PlaceOf } from '#shared/clients/s3/place.ts';
import { pollHttp } from '#shared/golden/poll/http.ts';
import {
  type SourceClient,
  type OpenOptions,
  openHttp,
  openRegistry,
  openStore,
  secretHeadersOf,
} from '#shared/golden/poll/open.ts';
import type { Validators, Observation } from '#shared/golden/poll/observation.ts';
import { type RoundAnswers, createRoundAnswers, pollRegistry } from '#shared/golden/poll/registry.ts';
import {
  type CronSource,
  type HttpCronSource,
  type RegistryCronSource,
  type S3CronSource,
  type VolumeCronSource,
  notAuthorized,
} from '#shared/golden/source.ts';
import { AppError, InvalidInput, Unavailable, messageOf } from '#shared/runtime/errors.ts';
import { redact, redactUrl } from '#shared/runtime/redact.ts';
import { validatorDigest } from '#shared/golden/version.ts';

export interface ObserveRequest {
  readonly source: CronSource;
  /** Where Secrets and ConfigMaps are looked up. */
  readonly namespace: string;
  readonly known: Validators;
  /** Looks of the same round share what they ask of a registry. */
  readonly round?: object | undefined;
  readonly signal?: AbortSignal | undefined;
}

/** Never throws for what the source does; throws Unavailable when the Kubernetes API is. */
export type Observe = (request: ObserveRequest) => Promise<Observation>;

export interface ObserveOptions extends OpenOptions {
  readonly kube: Pick<KubeClient, 'get' | 'create'>;
  /** As registries name it; for references to an index where the cron names none. */
  readonly architecture: string;
  /** Milliseconds since the epoch. */
  readonly now: () => number;
}

interface Tools extends ObserveOptions {
  readonly pace: RegistryPace;
  readonly health: HostHealth;
  readonly answers: RoundAnswers;
}

export const createObserver = (options: ObserveOptions): Observe => {
  const tools = {
    ...options,
    pace: createRegistryPace(options.now),
    health: createHostHealth(options.now),
    answers: createRoundAnswers(),
  };
  return async (request) => {
    try {
      return await poll(tools, request);
    } catch (error) {
      request.signal?.throwIfAborted();
      if (!(error instanceof AppError) || error instanceof Unavailable) throw error;
      const { code, retryAfterSeconds } = error;
      return { is: 'failed', reason: code, message: redact(messageOf(error)), retryAfterSeconds };
    }
  };
};

const poll = async (tools: Tools, request: ObserveRequest): Promise<Observation> => {
  const { source } = request;
  if (source.type === 'pvc') return pollVolume(tools, request.namespace, source);
  const hosts = hostsOf(source, await tools.registries());
  const http = await openHttp(tools, request.namespace, source);
  try {
    return await unlessDown(tools, hosts, request.signal, () => pollServer(tools, request, { source, http, hosts }));
  } finally {
    await http.close();
  }
};

type ServerSource = Exclude<CronSource, VolumeCronSource>;

/** Mirrors, and the server itself. */
const hostsOf = (source: ServerSource, access: RegistryAccess & MirrorAccess): readonly string[] => {
  if (source.type === 'registry') return placesOf(source.image, access).map(({ host }) => host);
  const url = new URL(source.type === 'http' ? (source.checksumUrl ?? source.url) : source.url);
  return [...mirrorsOf(url, access).map((mirror) => new URL(mirror).host), url.host];
};

/**
 * A host that is the only place and does not answer is left alone, since each request to it takes as long as its timeout, and a tick has many. Where there
 * are several places, the others are asked first.
 */
const unlessDown = async (
  { health }: Tools,
  [host = '', ...others]: readonly string[],
  signal: AbortSignal | undefined,
  ask: () => Promise<Observation>,
): Promise<Observation> => {
  if (others.length > 0) return ask();
  const seconds = Math.ceil(health.take(host) / 1000);
  if (seconds > 0) {
    const message = `${host} has failed several times in a row, and is not asked again for ${seconds} seconds`;
    throw new HttpFailure('Unreachable', message, { retryAfterSeconds: seconds });
  }
  try {
    const observation = await ask();
    health.answered(host);
    return observation;
  } catch (error) {
    if (signal?.aborted !== true) (isOfHost(error) ? health.failed : health.answered)(host);
    throw error;
  }
};

interface Looking {
  readonly source: ServerSource;
  readonly http: SourceClient;
  readonly hosts: readonly string[];
}

const pollServer = (tools: Tools, request: ObserveRequest, { source, http, hosts }: Looking): Promise<Observation> => {
  switch (source.type) {
    case 'registry':
      return pollRegistryImage(tools, request, { source, http, hosts });
    case 's3':
      return pollObject(tools, request, source, http);
    case 'http':
      return pollFile(tools, request, source, http);
  }
};

const pollRegistryImage = async (
  tools: Tools,
  { namespace, known, round, signal }: ObserveRequest,
  { source, http, hosts }: Looking & { readonly source: RegistryCronSource },
): Promise<Observation> => {
  const { image } = source;
  const seconds = tools.pace.waitSeconds(image.host);
  if (seconds > 0 && hosts.length === 1) {
    const message = `${image.host} accepts no more requests for ${seconds} seconds, and was not polled`;
    return { is: 'waiting', message, until: new Date(tools.now() + seconds * 1000).toISOString() };
  }
  const client = await openRegistry(tools, source, { namespace, http, signal });
  const access =
    source.secretName === undefined && source.caName === undefined ? [] : [namespace, source.secretName, source.caName];
  return pollRegistry(tools.answers.sharing(client, round, access), source, known, tools.architecture);
};

const pollFile = async (
  tools: Tools,
  { namespace, known, signal }: ObserveRequest,
  source: HttpCronSource,
  client: HttpClient,
): Promise<Observation> => {
  const secretHeaders = await secretHeadersOf(tools, source, namespace);
  const access = await tools.registries();
  return pollHttp({ client, access, health: tools.health, secretHeaders, now: tools.now, signal }, source, known);
};

const pollObject = async (
  tools: Tools,
  { namespace, known, signal }: ObserveRequest,
  source: S3CronSource,
  http: SourceClient,
): Promise<Observation> => {
  const origin = toDestination(new URL(source.url), {});
  const mirrors = mirrorsOf(origin.url, await tools.registries());
  const call = {
    origin,
    method: 'HEAD',
    headers: {},
    mirrors,
    health: tools.health,
    ...(signal && { signal }),
  } as const;
  const mirrored = await askMirrorsOnly(http, call);
  mirrored?.response.discard();
  if (mirrored?.response.status !== 200)
    return pollS3(await openStore(tools, source, { namespace, http }), source, known);
  const { response, from = '' } = mirrored;
  const { etag, 'x-amz-version-id': versionId } = response.headers;
  return toS3Observation({ etag, versionId }, { source, known, where: `${redactUrl(source.url)} (at ${from})` });
};

/** The existence of a volume is not disclosed to accounts that may not clone it. */
const pollVolume = async (
  { kube }: Tools,
  own: string,
  { namespace = own, name, account }: VolumeCronSource,
): Promise<Observation> => {
  const requester = serviceAccountRequester(own, account);
  const isOpen =
    namespace === own || (await grantFor(kube, requester, { use: 'clone-claim', namespace, name })) !== undefined;
  if (!isOpen) return { is: 'failed', reason: 'NotAuthorized', message: notAuthorized(own, account, namespace) };
  const volume = await kube.get(persistentVolumeClaims, { namespace, name });
  if (volume === undefined) {
    return { is: 'failed', reason: 'VolumeNotFound', message: `volume ${namespace}/${name} does not exist` };
  }
  const digest = `uid:${volume.metadata.uid ?? ''}`;
  return { is: 'found', digest, message: `volume ${namespace}/${name} has UID ${digest.slice(4)}`, memory: {} };
};

// Asks an object store whether an object changed: by its version where the bucket keeps versions, and its ETag.

/** One HEAD. Throws S3Failure and HttpFailure. */
const pollS3 = async (client: S3Client, source: S3CronSource, known: Validators): Promise<Observation> => {
  const { url } = source;
  const where = redactUrl(url);
  const place = s3PlaceOf(new URL(url));
  if (place === undefined) throw new InvalidInput(`${where} names no object`);
  return toS3Observation(await client.head(place), { source, known, where });
};

interface S3Look {
  readonly source: S3CronSource;
  readonly known: Validators;
  readonly where: string;
}

const toS3Observation = (
  { etag, versionId }: { readonly etag?: string | undefined; readonly versionId?: string | undefined },
  { source: { url }, known, where }: S3Look,
): Observation => {
  if (etag === undefined && versionId === undefined) {
    const message = `${where} has neither version nor ETag, so that a change cannot be observed`;
    return { is: 'failed', reason: 'NoValidator', message };
  }
  const digest = validatorDigest([url, 's3', versionId, etag]);
  const validators = [...(versionId === undefined ? [] : [`version ${versionId}`]), `ETag ${etag ?? 'none'}`].join(
    ' and ',
  );
  if (digest === known.sourceDigest) return { is: 'same', message: `${where} still has ${validators}` };
  return { is: 'found', digest, message: `${where} has ${validators}`, memory: { sourceDigest: digest } };
};
