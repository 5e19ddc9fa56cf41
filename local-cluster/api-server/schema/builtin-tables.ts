// What the generated client models lack about the built-in kinds: how lists are merged, which strings are quantities,
// which maps are atomic. Facts of Kubernetes 1.36; keys are `<model>.<field>` without the version prefix of the model.

export interface ListFacts {
  readonly type: 'map' | 'set' | 'atomic';
  readonly keys?: readonly string[];
  /** Strategic merge patch: key to merge by, and strategy. */
  readonly mergeKey?: string;
  readonly strategy?: string;
}

const mapBy = (keys: readonly string[], strategy = 'merge'): ListFacts => {
  const [mergeKey] = keys;
  return { type: 'map', keys, ...(mergeKey === undefined ? {} : { mergeKey }), strategy };
};
const plainMapBy = (...keys: readonly string[]): ListFacts => ({ type: 'map', keys });
const set: ListFacts = { type: 'set' };

const all = (facts: ListFacts, ...fields: readonly string[]): Record<string, ListFacts> =>
  Object.fromEntries(fields.map((field) => [field, facts]));

/** Lists that are not replaced as a whole. Every list that is not named here is atomic. */
export const lists: Readonly<Record<string, ListFacts>> = {
  ...all(mapBy(['containerPort', 'protocol']), 'Container.ports', 'EphemeralContainer.ports'),
  ...all(mapBy(['devicePath']), 'Container.volumeDevices', 'EphemeralContainer.volumeDevices'),
  ...all(
    mapBy(['mountPath']),
    'Container.volumeMounts',
    'EphemeralContainer.volumeMounts',
    'ContainerStatus.volumeMounts',
  ),
  ...all(mapBy(['ip']), 'PodSpec.hostAliases', 'PodStatus.podIPs'),
  ...all(mapBy(['port', 'protocol']), 'ServiceSpec.ports'),
  ...all(mapBy(['topologyKey', 'whenUnsatisfiable']), 'PodSpec.topologySpreadConstraints'),
  ...all(mapBy(['uid']), 'ObjectMeta.ownerReferences'),
  ...all(mapBy(['rule']), 'JSONSchemaProps.x-kubernetes-validations'),
  ...all(
    mapBy(['name']),
    'Container.env',
    'EphemeralContainer.env',
    'ContainerStatus.allocatedResourcesStatus',
    'PodSpec.containers',
    'PodSpec.initContainers',
    'PodSpec.ephemeralContainers',
    'PodSpec.imagePullSecrets',
    'PodSpec.schedulingGates',
    'ServiceAccount.secrets',
    'CSINodeSpec.drivers',
    'MutatingWebhookConfiguration.webhooks',
    'ValidatingWebhookConfiguration.webhooks',
    'MutatingWebhook.matchConditions',
    'ValidatingWebhook.matchConditions',
  ),
  ...all(
    mapBy(['name'], 'merge,retainKeys'),
    'PodSpec.volumes',
    'PodSpec.resourceClaims',
    'PodStatus.resourceClaimStatuses',
  ),
  ...all(
    mapBy(['type']),
    'ComponentStatus.conditions',
    'DaemonSetStatus.conditions',
    'DeploymentStatus.conditions',
    'NamespaceStatus.conditions',
    'NodeStatus.addresses',
    'NodeStatus.conditions',
    'PersistentVolumeClaimStatus.conditions',
    'PodDisruptionBudgetStatus.conditions',
    'PodStatus.conditions',
    'ReplicaSetStatus.conditions',
    'ReplicationControllerStatus.conditions',
    'ServiceStatus.conditions',
    'StatefulSetStatus.conditions',
  ),
  ...all(plainMapBy('type'), 'CustomResourceDefinitionStatus.conditions', 'CertificateSigningRequestStatus.conditions'),
  ...all(plainMapBy('name'), 'ResourceRequirements.claims'),
  'JobStatus.conditions': { type: 'atomic', mergeKey: 'type', strategy: 'merge' },
  'PodStatus.hostIPs': { type: 'atomic', mergeKey: 'ip', strategy: 'merge' },
  ...all({ type: 'set', strategy: 'merge' }, 'ObjectMeta.finalizers', 'NodeSpec.podCIDRs'),
  ...all(
    set,
    'CSIDriverSpec.volumeLifecycleModes',
    'Endpoint.addresses',
    'PodFailurePolicyOnExitCodesRequirement.values',
  ),
};

/** Patch strategies of fields other than lists. */
export const strategies: Readonly<Record<string, string>> = {
  'DeploymentSpec.strategy': 'retainKeys',
  'PodDisruptionBudgetSpec.selector': 'replace',
};

/** Models and fields applied as one value: a change of any part owns all of it. */
export const atomicMaps: ReadonlySet<string> = new Set([
  'ConfigMapKeySelector',
  'CrossVersionObjectReference',
  'EndpointAddress',
  'EndpointPort',
  'FileKeySelector',
  'LabelSelector',
  'LocalObjectReference',
  'NodeSelector',
  'NodeSelectorTerm',
  'ObjectFieldSelector',
  'ObjectReference',
  'OwnerReference',
  'ResourceFieldSelector',
  'RoleRef',
  'ScopeSelector',
  'SecretKeySelector',
  'SecretReference',
  'ServiceBackendPort',
  'Subject',
  'TopologySelectorTerm',
  'TypedLocalObjectReference',
  'PodSpec.nodeSelector',
  'ReplicationControllerSpec.selector',
  'ServiceSpec.selector',
]);

/** Fields whose model is atomic elsewhere but not here. */
export const granularMaps: ReadonlySet<string> = new Set(['PersistentVolumeSpec.claimRef']);

/** Resource quantities, or maps of them: numbers are accepted and stored as text. */
export const quantities: ReadonlySet<string> = new Set([
  'CSIStorageCapacity.capacity',
  'CSIStorageCapacity.maximumVolumeSize',
  'ContainerStatus.allocatedResources',
  'EmptyDirVolumeSource.sizeLimit',
  'LimitRangeItem.default',
  'LimitRangeItem.defaultRequest',
  'LimitRangeItem.max',
  'LimitRangeItem.maxLimitRequestRatio',
  'LimitRangeItem.min',
  'NodeStatus.allocatable',
  'NodeStatus.capacity',
  'Overhead.podFixed',
  'PersistentVolumeClaimStatus.allocatedResources',
  'PersistentVolumeClaimStatus.capacity',
  'PersistentVolumeSpec.capacity',
  'PodSpec.overhead',
  'PodStatus.allocatedResources',
  'ResourceFieldSelector.divisor',
  'ResourceQuotaSpec.hard',
  'ResourceQuotaStatus.hard',
  'ResourceQuotaStatus.used',
  'ResourceRequirements.limits',
  'ResourceRequirements.requests',
  'VolumeResourceRequirements.limits',
  'VolumeResourceRequirements.requests',
]);

/** Defaults that are part of the keys of list items. */
export const keyDefaults: Readonly<Record<string, string>> = {
  'ContainerPort.protocol': 'TCP',
  'ServicePort.protocol': 'TCP',
};

/** Models whose name contains the group because two groups have a kind of that name. */
export const qualifiedModels: Readonly<Record<string, string>> = {
  '/v1/Event': 'CoreV1Event',
  '/v1/EventList': 'CoreV1EventList',
  'events.k8s.io/v1/Event': 'EventsV1Event',
  'events.k8s.io/v1/EventList': 'EventsV1EventList',
  'authentication.k8s.io/v1/TokenRequest': 'AuthenticationV1TokenRequest',
};

/** Structures that exist even when empty, in addition to every `metadata`, `spec` and `status` and required ones. */
export const valueStructs: ReadonlySet<string> = new Set([
  'Container.resources',
  'CustomResourceDefinitionStatus.acceptedNames',
  'DaemonSetSpec.updateStrategy',
  'DeploymentSpec.strategy',
  'Event.deprecatedSource',
  'Event.involvedObject',
  'Event.regarding',
  'Event.source',
  'IngressStatus.loadBalancer',
  'NetworkPolicySpec.podSelector',
  'NodeStatus.daemonEndpoints',
  'NodeStatus.nodeInfo',
  'PersistentVolumeClaimSpec.resources',
  'PodTemplate.template',
  'ReplicaSetSpec.template',
  'ServiceStatus.loadBalancer',
  'StatefulSetSpec.updateStrategy',
]);
