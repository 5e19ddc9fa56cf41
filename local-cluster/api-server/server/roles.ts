// The default roles of every cluster, as far as clients of this server need them.
import type { ApiObject, Fields } from '../objects/object.ts';

const group = 'rbac.authorization.k8s.io';
const labels = { 'kubernetes.io/bootstrapping': 'rbac-defaults' };
const annotations = { 'rbac.authorization.kubernetes.io/autoupdate': 'true' };

const all = ['create', 'delete', 'deletecollection', 'get', 'list', 'patch', 'update', 'watch'];
const read = ['get', 'list', 'watch'];

const role = (name: string, rules: readonly Fields[]): ApiObject => ({
  apiVersion: `${group}/v1`,
  kind: 'ClusterRole',
  metadata: { name, labels, annotations },
  rules,
});

const aggregated = (name: string, level: string): ApiObject => ({
  ...role(name, []),
  aggregationRule: { clusterRoleSelectors: [{ matchLabels: { [`${group}/aggregate-to-${level}`]: 'true' } }] },
});

const part = (name: string, level: string, rules: readonly Fields[]): ApiObject => ({
  ...role(name, rules),
  metadata: { name, labels: { ...labels, [`${group}/aggregate-to-${level}`]: 'true' }, annotations },
});

const binding = (name: string, to: readonly string[]): ApiObject => ({
  apiVersion: `${group}/v1`,
  kind: 'ClusterRoleBinding',
  metadata: { name, labels, annotations },
  roleRef: { apiGroup: group, kind: 'ClusterRole', name },
  subjects: to.map((subject) => ({ apiGroup: group, kind: 'Group', name: subject })),
});

const namespaced: readonly [string, readonly string[]][] = [
  [
    '',
    ['configmaps', 'endpoints', 'events', 'persistentvolumeclaims', 'pods', 'pods/log', 'serviceaccounts', 'services'],
  ],
  ['apps', ['daemonsets', 'deployments', 'replicasets', 'statefulsets']],
  ['batch', ['cronjobs', 'jobs']],
  ['networking.k8s.io', ['networkpolicies']],
  ['policy', ['poddisruptionbudgets']],
];

const rulesFor = (verbs: readonly string[]): Fields[] =>
  namespaced.map(([apiGroup, resources]) => ({ apiGroups: [apiGroup], resources, verbs }));

const discoveryPaths = [
  '/api',
  '/api/*',
  '/apis',
  '/apis/*',
  '/healthz',
  '/livez',
  '/openapi',
  '/openapi/*',
  '/readyz',
  '/version',
  '/version/',
];

/** Roles and bindings, created at the first start. */
export const defaultRoles: readonly ApiObject[] = [
  role('cluster-admin', [
    { apiGroups: ['*'], resources: ['*'], verbs: ['*'] },
    { nonResourceURLs: ['*'], verbs: ['*'] },
  ]),
  role('system:discovery', [{ nonResourceURLs: discoveryPaths, verbs: ['get'] }]),
  role('system:public-info-viewer', [
    { nonResourceURLs: ['/healthz', '/livez', '/readyz', '/version', '/version/'], verbs: ['get'] },
  ]),
  role('system:basic-user', [
    {
      apiGroups: ['authorization.k8s.io'],
      resources: ['selfsubjectaccessreviews', 'selfsubjectrulesreviews'],
      verbs: ['create'],
    },
    { apiGroups: ['authentication.k8s.io'], resources: ['selfsubjectreviews'], verbs: ['create'] },
  ]),
  aggregated('admin', 'admin'),
  aggregated('edit', 'edit'),
  aggregated('view', 'view'),
  part('system:aggregate-to-admin', 'admin', [
    { apiGroups: [group], resources: ['roles', 'rolebindings'], verbs: all },
    ...rulesFor(all),
    { apiGroups: [''], resources: ['secrets'], verbs: all },
  ]),
  part('system:aggregate-to-edit', 'edit', [...rulesFor(all), { apiGroups: [''], resources: ['secrets'], verbs: all }]),
  part('system:aggregate-to-view', 'view', [
    ...rulesFor(read),
    { apiGroups: [''], resources: ['namespaces'], verbs: read },
  ]),
  {
    apiVersion: `${group}/v1`,
    kind: 'Role',
    metadata: { name: 'extension-apiserver-authentication-reader', namespace: 'kube-system', labels, annotations },
    rules: [
      {
        apiGroups: [''],
        resources: ['configmaps'],
        resourceNames: ['extension-apiserver-authentication'],
        verbs: ['get', 'list', 'watch'],
      },
    ],
  },
  binding('cluster-admin', ['system:masters']),
  binding('system:discovery', ['system:authenticated']),
  binding('system:basic-user', ['system:authenticated']),
  binding('system:public-info-viewer', ['system:authenticated', 'system:unauthenticated']),
];
