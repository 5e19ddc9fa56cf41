// Where an object fetches its bytes from, compared with what limits allow and deny. Pure.
import type { AllowedPlace, DeniedPlace, SignedPlace, TenantLimit } from '#shared/api/bullion/tenant-limit.ts';
import {
  type Denial,
  type ServerReach,
  type ServerPlace,
  isAt,
  mayBeAt,
  whyOutOfReach,
} from '#shared/clients/http/reach.ts';
import { objectUrl } from '#shared/clients/http/mirrors.ts';
import { officially, readReference, serverOf } from '#shared/clients/registry/reference.ts';
import type { Source } from '#shared/populate/source.ts';
import { redactUrl } from '#shared/runtime/redact.ts';

export interface WrittenSource {
  /** An image of a registry is at the URL of its repository. */
  readonly url: URL;
  /** For people. */
  readonly shown: string;
}

/** Stands for the object store of the installation, whose address users do not write. */
const ownStore = 'object-store.invalid';

const fromUrl = (text: string): readonly WrittenSource[] => {
  const url = URL.parse(text.trim());
  // Refused for what it is.
  return url === null ? [] : [{ url, shown: redactUrl(text.trim()) }];
};

const fromReference = (text: string): readonly WrittenSource[] => {
  const read = readReference(text);
  if ('problem' in read) return [];
  const { host, repository } = read.value;
  const url = URL.parse(`https://${serverOf(host)}/v2/${repository}/`);
  return url === null ? [] : [{ url, shown: `${host}/${repository}` }];
};

const fromObject = (endpoint: string, bucket: string, key: string, shown?: string): readonly WrittenSource[] => {
  if (!URL.canParse(endpoint)) return [];
  const url = objectUrl({ endpoint, bucket, key });
  return [{ url, shown: shown ?? redactUrl(url.href) }];
};

/** Nothing is fetched for copies within the cluster and for uploads. */
export const writtenSources = (source: Source | undefined): readonly WrittenSource[] => {
  switch (source?.type) {
    case 'http':
      return fromUrl(source.url);
    case 'registry':
      return fromReference(source.url);
    case 's3':
      return fromObject(source.endpoint, source.bucket, source.key);
    case 'object':
      return fromObject(`https://${ownStore}`, source.bucket, source.key, `bucket ${source.bucket}`);
    default:
      return [];
  }
};

/** `quay.io`, or `quay.io/containerdisks`. A single name at Docker Hub is an official image, or a folder of others. */
const registryPlaces = (text: string): readonly ServerPlace[] => {
  const [host = '', ...path] = text.toLowerCase().replace(/\/+$/, '').split('/');
  const named = path.join('/');
  return [...new Set([named, officially(host, named)])].map((repository) => ({
    host: serverOf(host),
    path: repository === '' ? '/v2/' : `/v2/${repository}/`,
  }));
};

/** Docker Hub has another name than its server. */
const hostPlaces = (host: string): readonly ServerPlace[] =>
  [...new Set([host, serverOf(host)])].map((one) => ({ host: one }));

const placesOf = ({
  host,
  registry,
  bucket,
  store = ownStore,
}: AllowedPlace | DeniedPlace | SignedPlace): readonly ServerPlace[] => {
  if (host !== undefined) return hostPlaces(host.toLowerCase());
  if (registry !== undefined) return registryPlaces(registry);
  if (bucket === undefined) return [];
  const at = store.toLowerCase();
  return [{ host: at, path: `/${bucket}/` }, { host: `${bucket}.${at}` }];
};

const nameOf = ({ host, registry, bucket, store }: AllowedPlace): string =>
  host ?? registry ?? `bucket ${bucket ?? ''}${store === undefined ? '' : ` of ${store}`}`;

/** More would not fit into a message. */
const mostNames = 8;

const namesOf = (places: readonly AllowedPlace[]): string => {
  const names = places.slice(0, mostNames).map(nameOf);
  const more = places.length - names.length;
  return names.length === 0 ? 'nothing' : `${names.join(', ')}${more > 0 ? ` and ${more} more` : ''}`;
};

/** Ends a message with what the administrator wrote, the nearest first. */
export const advise = (text: string, ...messages: readonly (string | undefined)[]): string => {
  const [own] = messages.filter((message) => message !== undefined);
  return own === undefined ? `${text}: ask the administrator of the cluster` : `${text}: ${own}`;
};

const denialsOf = ({ metadata, spec }: TenantLimit): readonly Denial[] =>
  (spec.sources?.deny ?? []).flatMap((entry): readonly Denial[] => {
    const because = advise(
      `TenantLimit ${metadata.name} denies it`,
      entry.message,
      spec.sources?.message,
      spec.message,
    );
    if (entry.addresses !== undefined) return [{ addresses: entry.addresses, because }];
    return placesOf(entry).map((place) => ({ place, because }));
  });

const allowedBy = (
  { metadata, spec }: TenantLimit,
  allow: readonly AllowedPlace[],
): ServerReach['allowed'][number] => ({
  places: allow.flatMap(placesOf),
  because: advise(
    `TenantLimit ${metadata.name} does not allow it; it allows ${namesOf(allow)}`,
    spec.sources?.message,
    spec.message,
  ),
});

/** A list that says nothing of further servers, because the place of each source may redirect anywhere. */
const isOpen = (allow: readonly AllowedPlace[], sources: readonly WrittenSource[]): boolean =>
  sources.length > 0 &&
  sources.every(({ url }) =>
    allow.some((entry) => entry.redirects === 'Any' && placesOf(entry).some((place) => isAt(url, place))),
  );

const listsOf = (limits: readonly TenantLimit[]) =>
  limits.flatMap((limit) => {
    const allow = limit.spec.sources?.allow;
    return allow === undefined ? [] : [{ limit, allow }];
  });

/** Which servers may be asked for these sources; `undefined`: no limit says anything about servers. */
export const reachOf = (limits: readonly TenantLimit[], sources: readonly WrittenSource[]): ServerReach | undefined => {
  const denied = limits.flatMap(denialsOf);
  const lists = listsOf(limits);
  if (denied.length === 0 && lists.length === 0) return undefined;
  const closed = lists.filter(({ allow }) => !isOpen(allow, sources));
  return { denied: [...denied], allowed: closed.map(({ limit, allow }) => allowedBy(limit, allow)) };
};

/** Why the sources, as they were written, are not allowed; empty: they are. */
export const sourceRefusals = (
  limits: readonly TenantLimit[],
  sources: readonly WrittenSource[],
): readonly string[] => {
  const reach: ServerReach = {
    denied: limits.flatMap(denialsOf),
    allowed: listsOf(limits).map(({ limit, allow }) => allowedBy(limit, allow)),
  };
  return sources.flatMap(({ url, shown }) => {
    const because = whyOutOfReach(reach, url);
    return because === undefined ? [] : [`${shown} must not be used as a source: ${because}`];
  });
};

/** Why an upload is not allowed; `undefined`: it is. */
export const uploadRefusal = (limits: readonly TenantLimit[]): string | undefined => {
  const denying = limits.find(({ spec }) => spec.sources?.uploads === 'Deny');
  if (denying === undefined) return undefined;
  const { metadata, spec } = denying;
  return advise(`TenantLimit ${metadata.name} does not allow uploads`, spec.sources?.message, spec.message);
};

/** What a limit says of the signature of a source. */
export interface SignedAs {
  readonly limit: TenantLimit;
  readonly signature: SignedPlace['signature'];
}

/** Who must have signed a source, by each limit that says it. */
export const signaturesOf = (limits: readonly TenantLimit[], { url }: WrittenSource): readonly SignedAs[] =>
  limits.flatMap((limit) => {
    const rule = limit.spec.sources?.signed?.find((place) => {
      const places = placesOf(place);
      return places.length === 0 || places.some((one) => mayBeAt(url, one));
    });
    return rule === undefined ? [] : [{ limit, signature: rule.signature }];
  });
