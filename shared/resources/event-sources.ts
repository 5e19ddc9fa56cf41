// Event sources of kinds that a cluster may not have. Knative's adapter exits if the API group of a kind is not served, and never watches a
// kind that is missing from a served group, so a source is created once its kind is served, and removed with it. Level-triggered; called by
// cron-tick each minute.
import { configMaps } from '#shared/api/foreign/core.ts';
import { labels, optionalSources, systemNamespace } from '#shared/api/names.ts';
import { type KubeObject, type ResourceType, keyOf } from '#shared/api/object.ts';
import type { KubeClient } from '#shared/clients/kube/client.ts';
import { tolerate, isChangedMeanwhile } from '#shared/clients/kube/tolerant.ts';
import { isNotFound } from '#shared/runtime/errors.ts';

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

/** Action for a source; `wanted` has an owner, so that it is deleted with its list. */
export type SourceAction =
  | { readonly do: 'create' | 'change'; readonly wanted: EventSource }
  | { readonly do: 'delete'; readonly found: EventSource };

/** Whether all wanted fields are present, ignoring added defaults. */
const has = (found: unknown, wanted: unknown): boolean => {
  if (typeof wanted !== 'object' || wanted === null) return found === wanted;
  if (typeof found !== 'object' || found === null) return false;
  const there = found as Readonly<Record<string, unknown>>;
  const isLong = !Array.isArray(wanted) || (Array.isArray(found) && found.length === wanted.length);
  return isLong && Object.entries(wanted).every(([key, value]) => has(there[key], value));
};

/** `undefined` of `isServed`: unknown because of an API error, so no action. */
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

interface Groups {
  readonly groups: readonly { readonly versions: readonly { readonly groupVersion: string }[] }[];
}

/** Versions of groups that the cluster has, with one request; `undefined` if unknown. */
const readVersions = async (kube: KubeClient): Promise<ReadonlySet<string> | undefined> => {
  try {
    const { groups } = await kube.raw<Groups>({ method: 'GET', path: '/apis' });
    return new Set(groups.flatMap(({ versions }) => versions.map(({ groupVersion }) => groupVersion)));
  } catch {
    return undefined;
  }
};

/** Kinds of a version of a group; empty if it is not served, `undefined` if unknown: the server of an aggregated API may be down. */
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

/** `undefined` in a cluster without Knative, which needs none. */
const readSources = async (kube: KubeClient): Promise<readonly EventSource[] | undefined> =>
  (await tolerate(kube.list(apiServerSources, { namespace: systemNamespace }), isNotFound))?.items;

/** No action without a list. Throws AppErrors of the client; the next call continues. */
export const followKinds = async (kube: KubeClient): Promise<void> => {
  const wanted = await readWanted(kube);
  const items = wanted.length === 0 ? undefined : await readSources(kube);
  if (items === undefined) return;
  const present = await readVersions(kube);
  const names = new Set(items.map(({ metadata }) => metadata.name));
  // A source that exists is never deleted because a list lacks the group: it may only be away.
  const inQuestion =
    (one: EventSource) =>
    ({ apiVersion }: Watched) =>
      names.has(one.metadata.name) || present?.has(apiVersion) !== false;
  const asked = wanted.flatMap((one) => one.spec.resources.filter(inQuestion(one)));
  const versions = new Set(asked.map(({ apiVersion }) => apiVersion));
  const kinds = new Map(
    await Promise.all([...versions].map(async (version) => [version, await readKinds(kube, version)] as const)),
  );
  const isServed = ({ apiVersion, kind }: Watched) => kinds.get(apiVersion)?.has(kind);
  for (const action of planSources(wanted, items, isServed)) {
    // Sequential: an error stops the rest and is reported. Another tick may be first.
    await tolerate(carryOut(kube, action), isChangedMeanwhile);
  }
};
