// Roles for people under infra/rbac: what editors and viewers of a namespace may do with our kinds.
import { type Manifest, partOf } from '#infra/generate/manifest.ts';
import type { Verb } from '#infra/generate/event-functions.ts';
import { type Rule, rule } from '#infra/generate/rbac.ts';
import { uploadTokenResource } from '#shared/exchange/target-name.ts';
import type { ResourceType } from '#shared/api/object.ts';

/** Who may edit or view a namespace may do so with our kinds, as aggregated roles grant it. */
export const buildUserRoles = (objects: readonly ResourceType[]): readonly Manifest[] => [
  withRule(
    userRole('edit', ['admin', 'edit'], objects, ['get', 'list', 'watch', 'create', 'update', 'patch', 'delete']),
    { apiGroups: [uploadTokenResource.group], resources: [uploadTokenResource.resource], verbs: ['create'] },
  ),
  userRole('view', ['view'], objects, ['get', 'list', 'watch']),
];

const withRule = (role: Manifest, more: Rule): Manifest => ({
  ...role,
  rules: [...(role['rules'] as readonly Rule[]), more],
});

const userRole = (
  name: string,
  into: readonly string[],
  ...[objects, verbs]: [readonly ResourceType[], readonly Verb[]]
): Manifest => ({
  apiVersion: 'rbac.authorization.k8s.io/v1',
  kind: 'ClusterRole',
  metadata: {
    name: `bullion-${name}`,
    labels: {
      ...partOf(name),
      ...Object.fromEntries(into.map((role) => [`rbac.authorization.k8s.io/aggregate-to-${role}`, 'true'])),
    },
  },
  rules: objects.map((type) => rule(type, verbs)),
});
