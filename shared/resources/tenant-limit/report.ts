// Once a minute: what namespaces use, in the status of the limits, and for their users in a ConfigMap of each namespace, because users may not read the
// limits of others. Counted from the listings that the tick makes anyway.
import { isDeepStrictEqual } from 'node:util';
import { type NamespaceUsage, type TenantLimit, tenantLimitKind } from '#shared/api/bullion/tenant-limit.ts';
import {
  type ConfigMap,
  type PersistentVolumeClaim,
  configMaps,
  namespaces,
  persistentVolumeClaims,
} from '#shared/api/foreign/core.ts';
import { labelsOfNamespace, matchesLabels } from '#shared/api/label-selector.ts';
import { labels, tenantLimits } from '#shared/api/names.ts';
import { apiVersionOf, type KubeObject, isOfType } from '#shared/api/object.ts';
import type { KubeClient } from '#shared/clients/kube/client.ts';
import { isOfOneObject, messageOf } from '#shared/runtime/errors.ts';
import type { Logger } from '#shared/runtime/log.ts';
import { itemsOf, usageOf } from './amounts.ts';
import { isPartOfAnother, wantedBy } from './wanted.ts';

export interface UsageReport {
  /** Takes note of an object that a listing came across. */
  readonly visit: (object: KubeObject) => void;
  readonly write: (reporting: Reporting) => Promise<void>;
}

/** Of a status. */
const mostNamespaces = 200;

interface Applied {
  readonly limit: TenantLimit;
  readonly usages: readonly NamespaceUsage[];
}

const isCounted = (object: KubeObject): boolean => wantedBy(object) !== undefined || isPartOfAnother(object);

const isFullest = (a: NamespaceUsage, b: NamespaceUsage): number =>
  (b.reached?.length ?? 0) - (a.reached?.length ?? 0) || a.namespace.localeCompare(b.namespace);

const statusOf = (usages: readonly NamespaceUsage[]) => ({
  namespaceCount: usages.length,
  reachedCount: usages.filter(({ reached }) => reached !== undefined).length,
  namespaces: usages.toSorted(isFullest).slice(0, mostNamespaces),
});

/** The text for users of a namespace: the limits as they are written, without the namespaces of others. */
const textOf = (applied: readonly Applied[], namespace: string): string => {
  const entries = applied.flatMap(({ limit, usages }) => {
    const used = usages.find((one) => one.namespace === namespace);
    const { namespaceSelector: _, ...spec } = limit.spec;
    return used === undefined ? [] : [{ name: limit.metadata.name, ...spec, used: { ...used, namespace: undefined } }];
  });
  return JSON.stringify(entries, null, 2);
};

const writeStatus = async (kube: KubeClient, { limit, usages }: Applied): Promise<void> => {
  const wanted = statusOf(usages);
  const { namespaceCount, reachedCount, namespaces: before } = limit.status ?? {};
  if (isDeepStrictEqual({ namespaceCount, reachedCount, namespaces: before }, wanted)) return;
  const { status, ...object } = limit;
  const next = { ...object, status: { ...status, ...wanted } } as TenantLimit;
  await kube.replace(tenantLimitKind.type, next, { subresource: 'status' });
};

/** Removed with the last limit. */
const ownersOf = (applied: readonly Applied[], namespace: string) =>
  applied
    .filter(({ usages }) => usages.some((one) => one.namespace === namespace))
    .map(({ limit: { metadata } }) => ({
      apiVersion: apiVersionOf(tenantLimitKind.type),
      kind: tenantLimitKind.type.kind,
      name: metadata.name,
      uid: metadata.uid ?? '',
    }));

/** Only ours stays in it, so that nothing is written again and again. */
const change = (found: ConfigMap, data: Readonly<Record<string, string>>, ownerReferences: readonly object[]) => ({
  metadata: { ownerReferences },
  data: { ...Object.fromEntries(Object.keys(found.data ?? {}).map((key) => [key, null])), ...data },
});

/** A user who changes it deceives nobody but themselves; it is written again. */
const writeText = async (kube: KubeClient, applied: readonly Applied[], namespace: string): Promise<void> => {
  const key = { namespace, name: tenantLimits };
  const data = { limits: textOf(applied, namespace) };
  const ownerReferences = ownersOf(applied, namespace);
  const found = await kube.get(configMaps, key);
  if (isDeepStrictEqual(found?.data, data) && isDeepStrictEqual(found?.metadata.ownerReferences, ownerReferences))
    return;
  if (found !== undefined && found.immutable !== true)
    return void (await kube.mergePatch(configMaps, key, change(found, data, ownerReferences)));
  if (found !== undefined) await kube.delete(configMaps, key, { uid: found.metadata.uid ?? '' });
  await kube.create(configMaps, { apiVersion: 'v1', kind: 'ConfigMap', metadata: { ...key, ownerReferences }, data });
};

const removeText = async (kube: KubeClient, namespace: string): Promise<void> => {
  const found = await kube.get(configMaps, { namespace, name: tenantLimits });
  if (found !== undefined)
    await kube.delete(configMaps, { namespace, name: tenantLimits }, { uid: found.metadata.uid ?? '' });
};

interface Reporting {
  readonly kube: KubeClient;
  readonly log: Logger;
}

/** Goes on with the others where the namespace is being deleted, another instance was first, or users made it impossible; the next tick retries. */
const writeEach = async <T>(
  { log }: Reporting,
  what: string,
  all: Iterable<T>,
  write: (one: T) => Promise<void>,
): Promise<void> => {
  for (const one of all) {
    try {
      await write(one);
    } catch (error) {
      if (!isOfOneObject(error)) throw error;
      log.warn(`${what} not written`, { error: messageOf(error) });
    }
  }
};

const report = async (
  reporting: Reporting,
  limits: readonly TenantLimit[],
  counted: ReadonlyMap<string, readonly KubeObject[]>,
): Promise<void> => {
  const { kube } = reporting;
  const there = await Array.fromAsync(kube.listAll(namespaces));
  const claims = Map.groupBy(
    await Array.fromAsync(kube.listAll(persistentVolumeClaims, { labelSelector: labels.ownerUid })),
    ({ metadata }): string => metadata.namespace ?? '',
  );
  const applied = limits.map((limit): Applied => {
    const selected = there.filter(({ metadata }) =>
      matchesLabels(limit.spec.namespaceSelector, labelsOfNamespace(metadata)),
    );
    return {
      limit,
      usages: selected.map(({ metadata: { name } }) => usageOf(limit.spec, name, itemsIn(name, counted, claims))),
    };
  });
  await writeEach(reporting, 'use of a limit', applied, (one) => writeStatus(kube, one));
  const limited = new Set(applied.flatMap(({ usages }) => usages.map(({ namespace }) => namespace)));
  await writeEach(reporting, 'limits of a namespace', limited, (namespace) => writeText(kube, applied, namespace));
  const before = new Set(limits.flatMap(({ status }) => status?.namespaces ?? []).map(({ namespace }) => namespace));
  await writeEach(reporting, 'former limits of a namespace', before.difference(limited), (namespace) =>
    removeText(kube, namespace),
  );
};

const itemsIn = (
  namespace: string,
  objects: ReadonlyMap<string, readonly KubeObject[]>,
  claims: ReadonlyMap<string, readonly PersistentVolumeClaim[]>,
) => itemsOf(objects.get(namespace) ?? [], claims.get(namespace) ?? []);

/** Costs nothing where the cluster has no limits: they are listed first. */
export const createUsageReport = (): UsageReport => {
  const limits: TenantLimit[] = [];
  const counted: KubeObject[] = [];
  return {
    visit: (object) => {
      if (isOfType(object, tenantLimitKind.type)) limits.push(object);
      else if (limits.length > 0 && isCounted(object)) counted.push(object);
    },
    write: async (reporting) => {
      if (limits.length === 0) return;
      await report(
        reporting,
        limits,
        Map.groupBy(counted, ({ metadata }) => metadata.namespace ?? ''),
      );
    },
  };
};
