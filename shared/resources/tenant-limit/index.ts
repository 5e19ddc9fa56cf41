// How TenantLimits are reconciled: they only report whether they can be applied. What namespaces use is counted by the tick (report.ts). One line in
// registry.ts.
import { type TenantLimit, type TenantLimitStatus, tenantLimitKind } from '#shared/api/bullion/tenant-limit.ts';
import { findCondition, setConditions } from '#shared/api/conditions.ts';
import { namespaces, persistentVolumeClaims } from '#shared/api/foreign/core.ts';
import type { ResourceType } from '#shared/api/object.ts';
import { readResource } from '#shared/resources/dialect.ts';
import type { Planner, ReconciledState, Reconciler, Resource } from '#shared/resources/reconciler.ts';
import { faultsOfLimit } from '#shared/resources/tenant-limit/rules.ts';
import { messageOf } from '#shared/runtime/errors.ts';
import { done, waiting } from '#shared/runtime/outcome.ts';

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

const planner: Planner<LimitResource> = {
  check: () => Promise.resolve(undefined),
  plan: ({ state }) => ({
    actions: [],
    state: { ...state, phase: 'Ready', reason: 'Ready', message: 'applies to the namespaces that it selects' },
  }),
  remove: ({ state }) => ({ actions: [], state, removed: true }),
};

const notReady = (state: ReconciledState, reason: string, message: string): ReconciledState => ({
  ...state,
  phase: 'NotReady',
  reason,
  message,
});

export const tenantLimitReconciler: Reconciler<TenantLimit, LimitResource> = {
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
  refusalOf: ({ object }) => {
    const faults = faultsOfLimit(object);
    const message = faults.map(({ field, message: text }) => `${field} ${text}`).join('; ');
    return faults.length === 0 ? undefined : { reason: 'InvalidSpec', message };
  },
  plannerOf: () => planner,
  finalizerOf: () => undefined,
  isSettled: ({ object, generation, deleting }) => !deleting && object.status?.observedGeneration === generation,
  isRetryDue: () => false,
  outcomeOf: ({ phase, message }) => (phase === 'Ready' ? done : waiting(message)),
  notesOf: () => [],
  announcementOf: () => undefined,
  revived: ({ state }) => state,
  failed: ({ state }, { reason, message }) => notReady(state, reason, message),
  refused: ({ state }, error) => notReady(state, `Api${error.code}`, `refused: ${messageOf(error)}`),
  fold: () => undefined,
};

export { readLimit };
