// How TenantLimits are reconciled: they only report whether they can be applied, and whether the keys that they name can be used. What namespaces use is
// counted by the tick (report.ts). One line in registry.ts.
import { type TenantLimit, type TenantLimitStatus, tenantLimitKind } from '#shared/api/bullion/tenant-limit.ts';
import type { SignatureRule } from '#shared/api/bullion/verify.ts';
import { findCondition, setConditions } from '#shared/api/conditions.ts';
import { configMaps, namespaces, persistentVolumeClaims } from '#shared/api/foreign/core.ts';
import { systemNamespace } from '#shared/api/names.ts';
import type { ResourceType } from '#shared/api/object.ts';
import type { KubeClient } from '#shared/clients/kube/client.ts';
import { type ReadConfigMap, type WhyUnusable, keyMapsOf, keysMissing } from '#shared/golden/signature/outcome.ts';
import { readResource } from '#shared/resources/dialect.ts';
import {
  type Planner,
  type Reconciler,
  type Resource,
  plainReconciler,
  refusalOfFaults,
} from '#shared/resources/reconciler.ts';
import { faultsOfLimit } from '#shared/resources/tenant-limit/rules.ts';
import { InvalidInput } from '#shared/runtime/errors.ts';

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

/** Of a function that cannot read keys. */
const onlyExist: WhyUnusable = async (rule, read) => {
  await Promise.all(keyMapsOf(rule).map(read));
  return undefined;
};

/** Why nothing could be verified by the keys that it names, each once. */
const readTroubles = async (
  kube: KubeClient,
  { spec: { sources = {} } }: TenantLimit,
  whyUnusable: WhyUnusable = onlyExist,
): Promise<readonly string[]> => {
  const read: ReadConfigMap = async (name) => {
    const found = await kube.get(configMaps, { namespace: systemNamespace, name });
    if (found === undefined) throw new InvalidInput(keysMissing(name, systemNamespace));
    return found;
  };
  const troubleOf = async (rule: SignatureRule): Promise<readonly string[]> => {
    try {
      return [(await whyUnusable(rule, read))?.message ?? []].flat();
    } catch (error) {
      if (!(error instanceof InvalidInput)) throw error;
      return [error.message];
    }
  };
  const troubles = await Promise.all((sources.signed ?? []).map(({ signature }) => troubleOf(signature)));
  return [...new Set(troubles.flat())];
};

const planner: Planner<LimitResource, readonly string[]> = {
  check: (kube, { object }, probes) => readTroubles(kube, object, probes?.whyUnusable),
  plan: ({ state }, troubles) => ({
    actions: [],
    state:
      troubles.length === 0
        ? { ...state, phase: 'Ready', reason: 'Ready', message: 'applies to the namespaces that it selects' }
        : {
            ...state,
            phase: 'NotReady',
            reason: 'KeysNotFound',
            message: `${troubles.join('; ')}. Until then, what must be signed with them waits`,
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
