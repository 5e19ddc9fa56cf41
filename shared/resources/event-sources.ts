// Event sources of kinds that a cluster may lack. Knative's adapter ends where a kind's group is not served, and where the group is there without the kind it
// looks once and never watches, so a source is made once its kind is served, and goes with it. Level-triggered; called by cron-tick each minute.
import { configMaps } from '#shared/api/foreign/core.ts';
import { labels, optionalSources, systemNamespace } from '#shared/api/names.ts';
import { type KubeObject, type ResourceType, keyOf } from '#shared/api/object.ts';
import type { KubeClient } from '#shared/clients/kube/client.ts';
import { isConflict, isNotFound } from '#shared/runtime/errors.ts';

interface Watched {
  readonly apiVersion: string;
  readonly kind: string;
}

export interface EventSource extends KubeObject {
  readonly spec: { readonly resources: readonly Watched[] };
}

export const apiServerSources: ResourceType<EventSource> = {
  group: 'sources.knative.dev',
  version: 'v1',
  kind: 'ApiServerSource',
  plural: 'apiserversources',
  namespaced: true,
};

/** What is to be done about a source; `wanted` has an owner, so that it goes with the list it stands in. */
export type SourceAction =
  | { readonly do: 'create' | 'change'; readonly wanted: EventSource }
  | { readonly do: 'delete'; readonly found: EventSource };

/** Whether all that is wanted is there, whatever defaults came to it. */
const has = (found: unknown, wanted: unknown): boolean => {
  if (typeof wanted !== 'object' || wanted === null) return found === wanted;
  if (typeof found !== 'object' || found === null) return false;
  const there = found as Readonly<Record<string, unknown>>;
  const isLong = !Array.isArray(wanted) || (Array.isArray(found) && found.length === wanted.length);
  return isLong && Object.entries(wanted).every(([key, value]) => has(there[key], value));
};

/** `undefined` of `isServed`: the API server could not say, and nothing is done. */
export const planSources = (
  wanted: readonly EventSource[],
  found: readonly EventSource[],
  isServed: (kind: Watched) => boolean | undefined,
): readonly SourceAction[] => {
  const named = new Map(found.map((one) => [one.metadata.name, one]));
  const names = new Set(wanted.map(({ metadata }) => metadata.name));
  const isOrphan = ({ metadata }: EventSource) =>
    metadata.labels?.[labels.optional] !== undefined && !names.has(metadata.name);
  const orphans = found.filter(isOrphan).map((one) => ({ do: 'delete', found: one }) as const);
  const changes = wanted.flatMap((one): readonly SourceAction[] => {
    const own = named.get(one.metadata.name);
    const answers = one.spec.resources.map(isServed);
    if (answers.includes(undefined) || own?.metadata.deletionTimestamp !== undefined) return [];
    if (answers.includes(false)) return own === undefined ? [] : [{ do: 'delete', found: own }];
    if (own === undefined) return [{ do: 'create', wanted: one }];
    return has(own, one) ? [] : [{ do: 'change', wanted: one }];
  });
  return [...orphans, ...changes];
};

const readWanted = async (kube: KubeClient): Promise<readonly EventSource[]> => {
  const list = await kube.get(configMaps, { namespace: systemNamespace, name: optionalSources });
  if (list === undefined) return [];
  const { name, uid = '' } = list.metadata;
  const ownerReferences = [{ apiVersion: 'v1', kind: 'ConfigMap', name, uid }];
  return Object.values(list.data ?? {}).map((text) => {
    const source = JSON.parse(text) as EventSource;
    return { ...source, metadata: { ...source.metadata, ownerReferences } };
  });
};

/** Kinds of a version of a group; none where it is not served, `undefined` where the API server cannot say: the server behind an API may be away. */
const readKinds = async (kube: KubeClient, apiVersion: string): Promise<ReadonlySet<string> | undefined> => {
  try {
    const path = apiVersion.includes('/') ? `/apis/${apiVersion}` : `/api/${apiVersion}`;
    const { resources } = await kube.raw<{ readonly resources: readonly Watched[] }>({ method: 'GET', path });
    return new Set(resources.map(({ kind }) => kind));
  } catch (error) {
    return isNotFound(error) ? new Set() : undefined;
  }
};

const carryOut = async (kube: KubeClient, action: SourceAction): Promise<unknown> => {
  switch (action.do) {
    case 'create':
      return kube.create(apiServerSources, action.wanted);
    case 'change': {
      const { metadata, spec } = action.wanted;
      const { labels: wanted, ownerReferences } = metadata;
      const change = { metadata: { labels: wanted, ownerReferences }, spec };
      return kube.mergePatch(apiServerSources, keyOf(action.wanted), change);
    }
    case 'delete':
      return kube.delete(apiServerSources, keyOf(action.found), { uid: action.found.metadata.uid ?? '' });
  }
};

/** Nothing where no list is installed. Throws AppErrors of the client; the next call goes on from wherever it came to. */
export const followKinds = async (kube: KubeClient): Promise<void> => {
  const wanted = await readWanted(kube);
  if (wanted.length === 0) return;
  const versions = new Set(wanted.flatMap(({ spec }) => spec.resources.map(({ apiVersion }) => apiVersion)));
  const kinds = new Map(
    await Promise.all([...versions].map(async (version) => [version, await readKinds(kube, version)] as const)),
  );
  const { items } = await kube.list(apiServerSources, { namespace: systemNamespace });
  const isServed = ({ apiVersion, kind }: Watched) => kinds.get(apiVersion)?.has(kind);
  for (const action of planSources(wanted, items, isServed)) {
    try {
      // One after the other: a refusal stops the rest, and says why.
      // oxlint-disable-next-line no-await-in-loop
      await carryOut(kube, action);
    } catch (error) {
      // Another tick was first.
      if (!isConflict(error) && !isNotFound(error)) throw error;
    }
  }
};
