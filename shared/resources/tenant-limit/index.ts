// How TenantLimits are reconciled: they only report whether they can be applied, and whether the keys that they name are there. What namespaces use is
// counted by the tick (report.ts). One line in registry.ts.
import { type TenantLimit, type TenantLimitStatus, tenantLimitKind } from '#shared/api/bullion/tenant-limit.ts';
import { findCondition, setConditions } from '#shared/api/conditions.ts';
import { configMaps, namespaces, persistentVolumeClaims } from '#shared/api/foreign/core.ts';
import { systemNamespace } from '#shared/api/names.ts';
import type { ResourceType } from '#shared/api/object.ts';
import type { KubeClient } from '#shared/clients/kube/client.ts';
import { refusalOfFaults, plainReconciler } from '#shared/resources/reconciler.ts';
import { keyMapsOf, keysMissing } from '#shared/golden/signature/outcome.ts';
import { readResource } from '#shared/resources/dialect.ts';
import type { Planner, Reconciler, Resource } from '#shared/resources/reconciler.ts';
import { faultsOfLimit } from '#shared/resources/tenant-limit/rules.ts';

interface LimitResource extends Resource {
  readonly object: TenantLimit;
}

const readLimit = (object: TenantLimit): LimitResource => {
  const ready = findCondition(object.status?.conditions, 'Ready');
  return {
    ...readResource(object),
    object,
    state: {
      phase: ready?.status === 'True' ? 'Ready' : 'NotReady',
      reason: ready?.reason ?? 'Pending',
      message: ready?.message ?? 'waiting to be processed',
    },
  };
};

/** ConfigMaps of our namespace that it takes keys from. */
const keyMapsIn = ({ spec: { sources = {} } }: TenantLimit): readonly string[] => [
  ...new Set((sources.signed ?? []).flatMap(({ signature }) => keyMapsOf(signature))),
];

const readMissing = async (kube: KubeClient, limit: TenantLimit): Promise<readonly string[]> => {
  const read = async (name: string) =>
    (await kube.get(configMaps, { namespace: systemNamespace, name })) === undefined ? [name] : [];
  return (await Promise.all(keyMapsIn(limit).map(read))).flat();
};

const planner: Planner<LimitResource, readonly string[]> = {
  check: (kube, { object }) => readMissing(kube, object),
  plan: ({ state }, missing) => ({
    actions: [],
    state:
      missing.length === 0
        ? { ...state, phase: 'Ready', reason: 'Ready', message: 'applies to the namespaces that it selects' }
        : {
            ...state,
            phase: 'NotReady',
            reason: 'KeysNotFound',
            message: `${missing.map((name) => keysMissing(name, systemNamespace)).join('; ')}. Until then, what must be signed with them waits`,
          },
  }),
  remove: ({ state }) => ({ actions: [], state, removed: true }),
};

export const tenantLimitReconciler: Reconciler<TenantLimit, LimitResource> = {
  ...plainReconciler('Ready', ({ state }, refusal) => ({ ...state, phase: 'NotReady', ...refusal })),
  kind: tenantLimitKind,
  watchedChildren: () => [],
  reads: () => [namespaces, persistentVolumeClaims].map((type) => type as ResourceType),
  read: readLimit,
  toStatus: ({ status = {} }, { generation }, { phase, reason, message }, now): TenantLimitStatus => {
    const ready = { type: 'Ready', status: phase === 'Ready' ? 'True' : 'False', reason, message } as const;
    return {
      ...status,
      observedGeneration: generation,
      conditions: [...setConditions(status.conditions ?? [], [ready], now)],
    } as TenantLimitStatus;
  },
  refusalOf: ({ object }) => refusalOfFaults({ faults: faultsOfLimit(object) }),
  plannerOf: () => planner,
  // Nobody reports when a ConfigMap with keys comes or goes: the tick looks.
  isSettled: ({ object, generation, deleting }, now) =>
    !deleting &&
    object.status?.observedGeneration === generation &&
    (now === undefined || keyMapsIn(object).length === 0),
};

export { readLimit };
