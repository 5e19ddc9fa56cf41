// One image at several places, in order: what one of them cannot give is asked of the next. Bytes are the same everywhere, since they are verified
// against digests; the first place that answers decides what a tag refers to.
import { HttpFailure } from '#shared/clients/http/errors.ts';
import type { HostHealth } from '#shared/clients/http/health.ts';
import { type ServedFrom, createServed } from '#shared/clients/http/served.ts';
import { type RegistryClient, createRegistryClient } from '#shared/clients/registry/client.ts';
import { type SecretData, findCredentials, findMirrorCredentials } from '#shared/clients/registry/credentials.ts';
import type { Place } from '#shared/clients/registry/mirrors.ts';
import type { Reference } from '#shared/clients/registry/reference.ts';
import { RegistryFailure } from '#shared/clients/registry/refusal.ts';
import type { SessionOptions } from '#shared/clients/registry/session.ts';
import { isRetryable, messageOf } from '#shared/runtime/errors.ts';

export interface MirroredOptions extends Omit<SessionOptions, 'host' | 'credentials' | 'plainHttp'> {
  /** At least one. */
  readonly places: readonly Place[];
  /** The image as the user named it: a Secret without names of registries is for its host alone. */
  readonly image: Reference;
  /** Default: anonymous. */
  readonly secret?: SecretData | undefined;
  /** Hosts that do not answer are asked only if no other is left. */
  readonly health: HostHealth;
}

export interface MirroredClient extends RegistryClient {
  /** Where blobs came from; `undefined` if there is only the registry itself, or nothing was served. */
  readonly servedFrom: ServedFrom;
}

interface Site {
  readonly place: Place;
  readonly client: RegistryClient;
  /** For people. */
  readonly name: string;
  /** When it last failed: a count that grows. A place that failed is asked after those that did not. */
  failedAt: number;
}

/** Throws InvalidInput if the Secret has an unknown format. */
const siteAt = (place: Place, { image, secret, ...session }: MirroredOptions): Site => {
  const { host, plainHttp } = place;
  const find = host === image.host ? findCredentials : findMirrorCredentials;
  const credentials = secret && find(secret, place);
  const client = createRegistryClient({ ...session, host, credentials, plainHttp });
  return { place, client, name: `${host}/${place.repository}`, failedAt: 0 };
};

/** The host itself is at fault, not what was asked of it. */
export const isOfHost = (error: unknown): boolean =>
  isRetryable(error) && !(error instanceof RegistryFailure && error.code !== 'RegistryFailed');

/** In order of their last failure. Hosts that rest come last: one of them may be the only one that has the image. */
function* askable(sites: readonly Site[], health: HostHealth): Generator<Site, void, undefined> {
  const resting: Site[] = [];
  for (const site of sites.toSorted((one, other) => one.failedAt - other.failedAt)) {
    if (health.take(site.place.host) === 0) yield site;
    else resting.push(site);
  }
  yield* resting;
}

type Ask<T, R extends Reference> = (client: RegistryClient, image: R, site: Site) => Promise<T>;

const createAsker = ({ health, signal }: MirroredOptions, sites: readonly Site[]) => {
  const bytes = createServed();
  let failures = 0;
  /** Without an error: its answer was not complete. */
  const fail = (site: Site, error?: unknown): void => {
    failures += 1;
    site.failedAt = failures;
    if (error !== undefined) bytes.failed(site.name, messageOf(error));
    if (error === undefined || isOfHost(error)) health.failed(site.place.host);
    else health.answered(site.place.host);
  };
  const first = async <T, R extends Reference>(image: R, ask: Ask<T, R>): Promise<T> => {
    const faults: { readonly host: string; readonly error: unknown }[] = [];
    for (const site of askable(sites, health)) {
      const { host, repository } = site.place;
      try {
        const answer = await ask(site.client, { ...image, host, repository }, site);
        health.answered(host);
        return answer;
      } catch (error) {
        signal?.throwIfAborted();
        fail(site, error);
        faults.push({ host, error });
      }
    }
    throw allFailed(faults);
  };
  return { first, fail, bytes };
};

export const createMirroredClient = (options: MirroredOptions): MirroredClient => {
  const sites = options.places.map((place) => siteAt(place, options));
  const { first, fail, bytes } = createAsker(options, sites);
  const [only] = sites;
  /** The place that served each blob last. A second request for a blob means that it was not complete. */
  const served = new Map<string, Site>();

  if (sites.length === 1 && only !== undefined) {
    const { host, repository } = only.place;
    if (host === options.image.host && repository === options.image.repository)
      return { ...only.client, servedFrom: () => undefined };
  }
  return {
    servedFrom: bytes.servedFrom,
    head: (image) => first(image, async (client, at, { name }) => ({ ...(await client.head(at)), saidBy: name })),
    manifest: (image) => first(image, (client, at) => client.manifest(at)),
    tags: (image) => first(image, (client, at) => client.tags(at)),
    referrers: (image) => first(image, (client, at) => client.referrers(at)),
    blob: (image, digest, offset) => {
      const before = served.get(digest);
      if (before !== undefined) fail(before);
      return first(image, async (client, at, site) => {
        const response = await client.blob(at, digest, offset);
        served.set(digest, site);
        bytes.began(site.name);
        return response;
      });
    },
  };
};

/** A retryable error if there is one, from whichever place: an image that a mirror lacks is not final. Otherwise the last error. With the messages of the others. */
const allFailed = (faults: readonly { readonly host: string; readonly error: unknown }[]): unknown => {
  const chief = faults.findLast(({ error }) => isRetryable(error)) ?? faults.at(-1);
  const last = chief?.error;
  const others = faults.filter((fault) => fault !== chief).map(({ host, error }) => `${host}: ${messageOf(error)}`);
  if (others.length === 0) return last;
  const message = `${messageOf(last)}; elsewhere: ${others.join('; ')}`;
  const more = { cause: last };
  if (last instanceof RegistryFailure)
    return new RegistryFailure(last.code, message, { ...more, ...waitOf(last.retryAfterSeconds) });
  if (last instanceof HttpFailure) return new HttpFailure(last.code, message, more);
  return last;
};

const waitOf = (retryAfterSeconds: number | undefined) =>
  retryAfterSeconds === undefined ? {} : { retryAfterSeconds };
