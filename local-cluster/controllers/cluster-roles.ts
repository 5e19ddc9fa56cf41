// Sets the rules of aggregated ClusterRoles from the roles they select, like clusterrole-aggregation: without it `edit` allows nothing.
import { isDeepStrictEqual } from 'node:util';
import type { KubeObject, ResourceType } from '#shared/api/object.ts';
import { type Controller, type ControllerContext, startController } from '#local-cluster/controllers/controller.ts';

interface Selector {
  readonly matchLabels?: Readonly<Record<string, string>>;
}

export interface ClusterRole extends KubeObject {
  readonly aggregationRule?: { readonly clusterRoleSelectors?: readonly Selector[] };
  readonly rules?: readonly object[] | null;
}

export const clusterRoles: ResourceType<ClusterRole> = {
  group: 'rbac.authorization.k8s.io',
  version: 'v1',
  kind: 'ClusterRole',
  plural: 'clusterroles',
  namespaced: false,
};

const isSelected = ({ matchLabels = {} }: Selector, { metadata }: ClusterRole): boolean =>
  Object.entries(matchLabels).every(([name, value]) => metadata.labels?.[name] === value);

/** Each rule once, role by role in order of their names. */
export const aggregatedRules = (role: ClusterRole, all: readonly ClusterRole[]): readonly object[] => {
  const selectors = role.aggregationRule?.clusterRoleSelectors ?? [];
  const rules = all
    .filter((other) => other.metadata.name !== role.metadata.name && selectors.some((one) => isSelected(one, other)))
    .toSorted((a, b) => (a.metadata.name < b.metadata.name ? -1 : 1))
    .flatMap((other) => other.rules ?? []);
  return rules.filter((rule, index) => rules.findIndex((other) => isDeepStrictEqual(other, rule)) === index);
};

export const startClusterRoleController = (context: ControllerContext): Controller =>
  startController(
    {
      ...context,
      name: 'cluster-roles',
      reconcile: async () => {
        const roles: ClusterRole[] = [];
        for await (const role of context.kube.listAll(clusterRoles)) roles.push(role);
        for (const role of roles.filter(({ aggregationRule }) => aggregationRule !== undefined)) {
          const rules = aggregatedRules(role, roles);
          if (isDeepStrictEqual(rules, role.rules ?? [])) continue;
          const { name, resourceVersion } = role.metadata;
          // One after the other: a role may select one that selects others, and its change triggers another pass.
          // oxlint-disable-next-line no-await-in-loop
          await context.kube.mergePatch(clusterRoles, { name }, { metadata: { resourceVersion }, rules });
        }
        return undefined;
      },
    },
    ({ watch }) => void watch(clusterRoles, () => ['all']),
  );
