// The initial objects of a new cluster: its namespaces, its roles, the service of the API itself.
import type { ApiObject } from '../objects/object.ts';
import { timestamp } from '../handlers/call.ts';
import type { Registry } from '../registry/registry.ts';
import { toStored } from '../registry/resource.ts';
import type { Store } from '../store/store.ts';
import { defaultRoles } from './roles.ts';

const namespaces = ['default', 'kube-node-lease', 'kube-public', 'kube-system'];

const namespaceOf = (name: string): ApiObject => ({
  apiVersion: 'v1',
  kind: 'Namespace',
  metadata: { name, labels: { 'kubernetes.io/metadata.name': name } },
  spec: { finalizers: ['kubernetes'] },
  status: { phase: 'Active' },
});

const apiService = (port: number): ApiObject => ({
  apiVersion: 'v1',
  kind: 'Service',
  metadata: { name: 'kubernetes', namespace: 'default', labels: { component: 'apiserver', provider: 'kubernetes' } },
  spec: {
    clusterIP: '10.0.0.1',
    clusterIPs: ['10.0.0.1'],
    internalTrafficPolicy: 'Cluster',
    ipFamilies: ['IPv4'],
    ipFamilyPolicy: 'SingleStack',
    ports: [{ name: 'https', port: 443, protocol: 'TCP', targetPort: port }],
    sessionAffinity: 'None',
    type: 'ClusterIP',
  },
  status: { loadBalancer: {} },
});

const priorityClass = (name: string, value: number, description: string): ApiObject => ({
  apiVersion: 'scheduling.k8s.io/v1',
  kind: 'PriorityClass',
  metadata: { name, generation: 1 },
  value,
  description,
  preemptionPolicy: 'PreemptLowerPriority',
});

export interface Bootstrap {
  readonly store: Store;
  readonly registry: Registry;
  readonly clock: () => Date;
  readonly uuid: () => string;
  readonly port: number;
}

/** Creates missing objects; existing ones are unchanged. */
export const bootstrap = ({ store, registry, clock, uuid, port }: Bootstrap): void => {
  const wanted = [
    ...namespaces.map(namespaceOf),
    apiService(port),
    priorityClass(
      'system-cluster-critical',
      2_000_000_000,
      'Used for system critical pods that must run in the cluster, but can be moved to another node if necessary.',
    ),
    priorityClass(
      'system-node-critical',
      2_000_001_000,
      'Used for system critical pods that must not be moved from their current node.',
    ),
    ...defaultRoles,
  ];
  const isFirst = store.version() === 0;
  for (const manifest of wanted) {
    const [group, version] = splitVersion(manifest.apiVersion);
    const resource = registry.byKind(group, version, manifest.kind);
    const { metadata } = manifest;
    if (resource === undefined) continue;
    const key = {
      collection: resource.collection,
      namespace: metadata.namespace ?? '',
      name: metadata.name ?? '',
    };
    if (store.get(key) !== undefined) continue;
    const object = {
      ...structuredClone(manifest),
      metadata: { ...metadata, uid: uuid(), creationTimestamp: timestamp(clock()) },
    };
    store.create(key, toStored(resource, object));
  }
  // Versions before the first start cannot be watched.
  if (isFirst) store.compact(store.version());
};

const splitVersion = (apiVersion: string): [string, string] => {
  const [first = '', second] = apiVersion.split('/');
  return second === undefined ? ['', first] : [first, second];
};
