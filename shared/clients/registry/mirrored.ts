// One image at several places, in order: what one of them cannot give is asked of the next. Bytes are the same everywhere, since they are verified
// against digests; what a tag means is said by the first place that answers.
import { HttpFailure } from '#shared/clients/http/errors.ts';
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
}

interface Site {
  readonly place: Place;
  readonly client: RegistryClient;
  /** When it last failed: a count that grows. A place that failed is asked after those that did not. */
  failedAt: number;
}

/** Throws InvalidInput if the Secret has an unknown format. */
const siteAt = (place: Place, { image, secret, ...session }: MirroredOptions): Site => {
  const { host, plainHttp } = place;
  const find = host === image.host ? findCredentials : findMirrorCredentials;
  const credentials = secret && find(secret, place);
  return { place, client: createRegistryClient({ ...session, host, credentials, plainHttp }), failedAt: 0 };
};

export const createMirroredClient = (options: MirroredOptions): RegistryClient => {
  const sites = options.places.map((place) => siteAt(place, options));
  const [only] = sites;
  let failures = 0;
  /** The place that served each blob last. A second request for a blob means that it was not complete. */
  const served = new Map<string, Site>();

  const fail = (site: Site): void => {
    failures += 1;
    site.failedAt = failures;
  };

  const first = async <T, R extends Reference>(
    image: R,
    ask: (client: RegistryClient, image: R, site: Site) => Promise<T>,
  ): Promise<T> => {
    const faults: { readonly host: string; readonly error: unknown }[] = [];
    for (const site of sites.toSorted((one, other) => one.failedAt - other.failedAt)) {
      const { host, repository } = site.place;
      try {
        // oxlint-disable-next-line no-await-in-loop
        return await ask(site.client, { ...image, host, repository }, site);
      } catch (error) {
        options.signal?.throwIfAborted();
        fail(site);
        faults.push({ host, error });
      }
    }
    throw allFailed(faults);
  };

  if (sites.length === 1 && only !== undefined) {
    const { host, repository } = only.place;
    if (host === options.image.host && repository === options.image.repository) return only.client;
  }
  return {
    head: (image) => first(image, (client, at) => client.head(at)),
    manifest: (image) => first(image, (client, at) => client.manifest(at)),
    tags: (image) => first(image, (client, at) => client.tags(at)),
    referrers: (image) => first(image, (client, at) => client.referrers(at)),
    blob: (image, digest, offset) => {
      const before = served.get(digest);
      if (before !== undefined) fail(before);
      return first(image, async (client, at, site) => {
        const response = await client.blob(at, digest, offset);
        served.set(digest, site);
        return response;
      });
    },
  };
};

/** An error that a retry can mend, wherever it came from: that a mirror lacks the image does not make it final. Else the last; with the others. */
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
