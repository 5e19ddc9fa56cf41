// Roles for users under infra/rbac: permissions of editors and viewers of a namespace on our kinds.
import { type GeneratedManifest, partOf } from '#infra/generate/manifest.ts';
import type { ApiVerb } from '#infra/generate/event-functions.ts';
import { type Rule, rule } from '#infra/generate/rbac.ts';
import { uploadTokenResource } from '#shared/exchange/target-name.ts';
import { cdiConfigs } from '#shared/api/cdi/cdi-config.ts';
import { goldenImagePolicyKind, policyVerbs } from '#shared/api/bullion/golden-image-policy.ts';
import { tenantLimitKind } from '#shared/api/bullion/tenant-limit.ts';
import type { ResourceType } from '#shared/api/object.ts';

const policies = goldenImagePolicyKind.type;

/** Limits are for administrators of the cluster: they name other tenants, and those who are limited must not change them. */
const forTenants = (types: readonly ResourceType[]): readonly ResourceType[] =>
  types.filter(({ plural }) => plural !== tenantLimitKind.type.plural);

/** Editors and viewers of a namespace get the same permissions on our kinds, by aggregated roles. */
export const buildUserRoles = (objects: readonly ResourceType[]): readonly GeneratedManifest[] => [
  withRule(
    userRole('edit', ['admin', 'edit'], forTenants(objects), [
      'get',
      'list',
      'watch',
      'create',
      'update',
      'patch',
      'delete',
    ]),
    { apiGroups: [uploadTokenResource.group], resources: [uploadTokenResource.resource], verbs: ['create'] },
  ),
  // Separate verbs: permission to edit objects of a namespace does not include the decision which version all users get.
  {
    ...userRole('release', ['admin'], [], []),
    rules: [{ apiGroups: [policies.group], resources: [policies.plural], verbs: policyVerbs }],
  },
  userRole('view', ['view'], forTenants(objects), ['get', 'list', 'watch']),
  ...forEverybody('config-reader', [rule(cdiConfigs, ['get'])]),
];

/** Roles of namespaces cannot contain cluster-scoped kinds: every authenticated user may read the upload URL, as in CDI. */
const forEverybody = (name: string, rules: readonly Rule[]): readonly GeneratedManifest[] => {
  const metadata = { name: `bullion-${name}`, labels: partOf(name) };
  const group = 'rbac.authorization.k8s.io';
  return [
    { apiVersion: `${group}/v1`, kind: 'ClusterRole', metadata, rules },
    {
      apiVersion: `${group}/v1`,
      kind: 'ClusterRoleBinding',
      metadata,
      roleRef: { apiGroup: group, kind: 'ClusterRole', name: metadata.name },
      subjects: [{ apiGroup: group, kind: 'Group', name: 'system:authenticated' }],
    },
  ];
};

const withRule = (role: GeneratedManifest, more: Rule): GeneratedManifest => ({
  ...role,
  rules: [...(role['rules'] as readonly Rule[]), more],
});

const userRole = (
  name: string,
  into: readonly string[],
  objects: readonly ResourceType[],
  verbs: readonly ApiVerb[],
): GeneratedManifest => ({
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
