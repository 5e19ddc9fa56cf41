// Which limits apply to a namespace, and what it uses. Reads, and decides nothing.
import { readNamespaceLabels } from '#shared/access/offers.ts';
import { type TenantLimit, tenantLimitKind } from '#shared/api/bullion/tenant-limit.ts';
import { persistentVolumeClaims } from '#shared/api/foreign/core.ts';
import { matchesLabels } from '#shared/api/label-selector.ts';
import { labels } from '#shared/api/names.ts';
import type { KubeObject } from '#shared/api/object.ts';
import type { KubeClient } from '#shared/clients/kube/client.ts';
import { allIfServed } from '#shared/clients/kube/tolerant.ts';
import { cached } from '#shared/runtime/cached.ts';
import { type CountedItem, itemsOf } from './amounts.ts';
import { countedKinds } from './wanted.ts';

/** Every limit of the cluster; none where its kind is not installed yet. */
export const listLimits = (kube: KubeClient): Promise<readonly TenantLimit[]> =>
  allIfServed(kube, tenantLimitKind.type);

/** The limits that select a namespace. One request where the cluster has no limits. */
export const limitsOn = async (
  kube: KubeClient,
  namespace: string,
  all: readonly TenantLimit[],
): Promise<readonly TenantLimit[]> => {
  if (all.length === 0) return [];
  const found = await readNamespaceLabels(kube, namespace);
  return all.filter(
    ({ metadata, spec }) => metadata.deletionTimestamp === undefined && matchesLabels(spec.namespaceSelector, found),
  );
};

/** Limits that apply to a namespace. `isFresh`: as they are now, before something begins; else as they were a moment ago. Throws Unavailable if the API is. */
export type LimitsLook = (namespace: string, isFresh?: boolean) => Promise<readonly TenantLimit[]>;

/** Milliseconds for which the list of limits is cached. */
const lastsMs = 5_000;

export const createLimitsLook = (kube: KubeClient, now: () => number = Date.now): LimitsLook => {
  const all = cached(() => listLimits(kube), lastsMs, now);
  return async (namespace, isFresh) => limitsOn(kube, namespace, await all(isFresh));
};

/** Everything of a namespace that is counted. */
export const readItems = async (kube: KubeClient, namespace: string): Promise<readonly CountedItem[]> => {
  const objects: KubeObject[] = [];
  for (const { type } of countedKinds) {
    objects.push(...(await allIfServed(kube, type, { namespace })));
  }
  const claims = kube.listAll(persistentVolumeClaims, { namespace, labelSelector: labels.ownerUid });
  return itemsOf(objects, await Array.fromAsync(claims));
};
