// One page of a list, read by the API's own pages, so that memory does not grow with the cluster.
import { type Found } from '#shared/catalogue/image.ts';
import { withDetail } from '#shared/catalogue/objects.ts';
import type { KubeClient } from '#shared/clients/kube/client.ts';
import { type AnyType, type Query, compare, isAskedFor, typeName, typesOf } from '#shared/console/query.ts';
import { Denied, isNotFound } from '#shared/runtime/errors.ts';

export const pageRows = 100;
/** Objects looked through for one page of a search: the rest is a click away. */
const mostSearched = 5_000;
/** Objects that are sorted at most. */
const mostSorted = 50_000;
const apiPage = 500;

export interface Listing {
  readonly found: readonly Found[];
  /** Of the next page, as `Query.after`; `undefined`: this is the last. */
  readonly next: string | undefined;
  /** From which version on each kind is to be watched. */
  readonly since: Readonly<Record<string, string>>;
  /** Kinds that who looks may not list. */
  readonly denied: readonly AnyType[];
  /** Whether so many objects were looked through that the rest was left out. */
  readonly isCut: boolean;
}

interface Part {
  readonly type: AnyType;
  readonly items: readonly Found[];
  readonly version: string;
  readonly next: string | undefined;
}

interface Start {
  readonly kind: string;
  readonly token: string | undefined;
}

/** The pages of every kind, one after the other. A kind that the cluster lacks holds nothing. */
async function* readParts(
  kube: KubeClient,
  query: Query,
  { start, limit, denied }: { readonly start: Start; readonly limit: number; readonly denied: AnyType[] },
): AsyncGenerator<Part> {
  const types = typesOf(query);
  const at = Math.max(
    0,
    types.findIndex((type) => typeName(type) === start.kind),
  );
  let { token } = start;
  for (const type of types.slice(at)) {
    try {
      do {
        const page = await kube.list(type, {
          namespace: query.namespace === '' ? undefined : query.namespace,
          limit,
          ...(token === undefined ? {} : { continue: token }),
        });
        token = page.metadata.continue === '' ? undefined : page.metadata.continue;
        const items = page.items.map((image) => ({ type, image: withDetail(image) }));
        yield { type, items, version: page.metadata.resourceVersion, next: token };
      } while (token !== undefined);
    } catch (error) {
      if (error instanceof Denied) denied.push(type);
      else if (!isNotFound(error)) throw error;
      token = undefined;
    }
  }
}

const readStart = ({ after }: Query): Start => {
  const at = after.indexOf(':');
  return at < 0
    ? { kind: '', token: undefined }
    : { kind: after.slice(0, at), token: after.slice(at + 1) || undefined };
};

/** In the order of the API: whole pages of it, until there are enough rows. */
const listInOrder = async (kube: KubeClient, query: Query): Promise<Listing> => {
  const isFiltered = query.search !== '' || query.state !== '';
  const found: Found[] = [];
  const denied: AnyType[] = [];
  const since: Record<string, string> = {};
  const types = typesOf(query);
  let searched = 0;
  const parts = readParts(kube, query, { start: readStart(query), limit: isFiltered ? apiPage : pageRows, denied });
  for await (const { type, items, version, next } of parts) {
    found.push(...items.filter((item) => isAskedFor(query, item)));
    since[typeName(type)] ??= version;
    searched += items.length;
    const following = types[types.indexOf(type) + 1];
    if (found.length < pageRows && searched < mostSearched) continue;
    if (next === undefined && following === undefined) break;
    const after = next === undefined ? `${typeName(following as AnyType)}:` : `${typeName(type)}:${next}`;
    return { found, next: after, since, denied, isCut: found.length < pageRows };
  }
  return { found, next: undefined, since, denied, isCut: false };
};

/** Everything is looked through, and no more than the rows up to the end of the page are kept. */
const listSorted = async (kube: KubeClient, query: Query): Promise<Listing> => {
  const before = Math.max(0, Math.floor(Number(query.after)) || 0);
  const kept = before + pageRows;
  const order = compare(query);
  let best: Found[] = [];
  const denied: AnyType[] = [];
  const since: Record<string, string> = {};
  let [searched, matched] = [0, 0];
  for await (const { type, items, version } of readParts(kube, query, {
    start: readStart({ ...query, after: '' }),
    limit: apiPage,
    denied,
  })) {
    const asked = items.filter((item) => isAskedFor(query, item));
    best = [...best, ...asked].toSorted(order).slice(0, kept);
    since[typeName(type)] ??= version;
    matched += asked.length;
    searched += items.length;
    if (searched >= mostSorted) break;
  }
  const next = matched > kept ? String(kept) : undefined;
  return { found: best.slice(before), next, since, denied, isCut: searched >= mostSorted };
};

export const readListing = (kube: KubeClient, query: Query): Promise<Listing> =>
  query.sort === '' ? listInOrder(kube, query) : listSorted(kube, query);
