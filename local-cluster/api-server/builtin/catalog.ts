// The built-in resources, one line each: discovery and the router read this table.
import type { Resource, Subresource } from '../registry/resource.ts';
import * as cluster from '../tables/cluster.ts';
import * as volumes from '../tables/storage.ts';
import * as pods from '../tables/workloads.ts';
import { apiServiceStrategy } from './api-services.ts';
import * as core from './core.ts';
import { crdStrategy } from './crds.ts';
import { coreEventStrategy, eventStrategy } from './events.ts';
import { cronJobStrategy, jobStrategy } from './jobs.ts';
import { podStrategy } from './pods.ts';
import { allVerbs, changing, define } from './define.ts';
import { bindingStrategy, roleStrategy } from './roles.ts';
import { plainStrategy, withStatus } from './define.ts';
import * as storage from './volumes.ts';
import { webhookStrategy } from './webhooks.ts';
import * as work from './workloads.ts';

const all = ['all'];
const extensions = ['api-extensions'];
const create = ['create'];
const scale: Subresource = { name: 'scale', kind: 'Scale', group: 'autoscaling', version: 'v1', verbs: changing };
const binding: Subresource = { name: 'binding', kind: 'Binding', verbs: create };
const eviction: Subresource = { name: 'eviction', kind: 'Eviction', group: 'policy', version: 'v1', verbs: create };
const log: Subresource = { name: 'log', kind: 'Pod', verbs: ['get'] };
const token: Subresource = {
  name: 'token',
  kind: 'TokenRequest',
  group: 'authentication.k8s.io',
  version: 'v1',
  verbs: create,
};
const finalize: Subresource = { name: 'finalize', kind: 'Namespace', verbs: ['update'] };

const namespaceVerbs = allVerbs.filter((verb) => verb !== 'deletecollection');
const coreEvents = { collection: 'events', apiVersion: 'v1' };
const rbac = 'rbac.authorization.k8s.io/v1';
const admission = 'admissionregistration.k8s.io/v1';
const account = { ...core.serviceAccountStrategy };

const coreResources: readonly Resource[] = [
  define('v1/ConfigMap configmaps', { short: ['cm'], strategy: core.configMapStrategy, table: cluster.configMapShape }),
  define('v1/Endpoints endpoints', { short: ['ep'], strategy: core.endpointsStrategy, table: cluster.endpointsShape }),
  define('v1/Event events', { short: ['ev'], strategy: coreEventStrategy, table: cluster.eventShape }),
  define('v1/LimitRange limitranges', { short: ['limits'] }),
  define('v1/Namespace namespaces', {
    short: ['ns'],
    cluster: true,
    verbs: namespaceVerbs,
    subresources: [finalize],
    strategy: core.namespaceStrategy,
    table: cluster.namespaceShape,
  }),
  define('v1/Node nodes', { short: ['no'], cluster: true, strategy: core.nodeStrategy, table: cluster.nodeShape }),
  define('v1/PersistentVolumeClaim persistentvolumeclaims', {
    short: ['pvc'],
    strategy: storage.claimStrategy,
    table: volumes.claimShape,
  }),
  define('v1/PersistentVolume persistentvolumes', {
    short: ['pv'],
    cluster: true,
    strategy: storage.volumeStrategy,
    table: volumes.volumeShape,
  }),
  define('v1/PodTemplate podtemplates'),
  define('v1/Pod pods', {
    short: ['po'],
    categories: all,
    subresources: [binding, eviction, log],
    strategy: podStrategy,
    table: pods.podShape,
  }),
  define('v1/ResourceQuota resourcequotas', { short: ['quota'], strategy: withStatus() }),
  define('v1/Secret secrets', { strategy: core.secretStrategy, table: cluster.secretShape }),
  define('v1/ServiceAccount serviceaccounts', {
    short: ['sa'],
    subresources: [token],
    strategy: account,
    table: cluster.serviceAccountShape,
  }),
  define('v1/Service services', {
    short: ['svc'],
    categories: all,
    strategy: core.serviceStrategy,
    table: cluster.serviceShape,
  }),
];

const workloads: readonly Resource[] = [
  define('apps/v1/DaemonSet daemonsets', {
    short: ['ds'],
    categories: all,
    strategy: work.daemonSetStrategy,
    table: pods.daemonSetShape,
  }),
  define('apps/v1/Deployment deployments', {
    short: ['deploy'],
    categories: all,
    subresources: [scale],
    strategy: work.deploymentStrategy,
    table: pods.deploymentShape,
  }),
  define('apps/v1/ReplicaSet replicasets', {
    short: ['rs'],
    categories: all,
    subresources: [scale],
    strategy: work.replicaSetStrategy,
    table: pods.replicaSetShape,
  }),
  define('apps/v1/StatefulSet statefulsets', {
    short: ['sts'],
    categories: all,
    subresources: [scale],
    strategy: work.statefulSetStrategy,
    table: pods.statefulSetShape,
  }),
  define('batch/v1/CronJob cronjobs', {
    short: ['cj'],
    categories: all,
    strategy: cronJobStrategy,
    table: pods.cronJobShape,
  }),
  define('batch/v1/Job jobs', { categories: all, strategy: jobStrategy, table: pods.jobShape }),
  define('policy/v1/PodDisruptionBudget poddisruptionbudgets', {
    short: ['pdb'],
    strategy: work.disruptionStrategy,
    table: cluster.disruptionShape,
  }),
];

const storedOnly: readonly Resource[] = [
  define('apps/v1/ControllerRevision controllerrevisions'),
  define('discovery.k8s.io/v1/EndpointSlice endpointslices', { strategy: { ...plainStrategy, hasGeneration: true } }),
  define('networking.k8s.io/v1/Ingress ingresses', { short: ['ing'], strategy: withStatus({ hasGeneration: true }) }),
  define('networking.k8s.io/v1/IngressClass ingressclasses', { cluster: true }),
  define('node.k8s.io/v1/RuntimeClass runtimeclasses', { cluster: true }),
  define('storage.k8s.io/v1/CSINode csinodes', { cluster: true }),
  define('storage.k8s.io/v1/CSIStorageCapacity csistoragecapacities'),
  define('storage.k8s.io/v1/VolumeAttachment volumeattachments', { cluster: true, strategy: withStatus() }),
];

const clusterResources: readonly Resource[] = [
  define('apiregistration.k8s.io/v1/APIService apiservices', {
    cluster: true,
    categories: extensions,
    strategy: apiServiceStrategy,
    table: cluster.apiServiceShape,
  }),
  define('events.k8s.io/v1/Event events', {
    short: ['ev'],
    strategy: eventStrategy,
    table: cluster.eventShape,
    stored: coreEvents,
  }),
  define('networking.k8s.io/v1/NetworkPolicy networkpolicies', {
    short: ['netpol'],
    strategy: work.networkPolicyStrategy,
    table: cluster.networkPolicyShape,
  }),
  define(`${rbac}/ClusterRoleBinding clusterrolebindings`, {
    cluster: true,
    strategy: bindingStrategy,
    table: cluster.bindingShape,
  }),
  define(`${rbac}/ClusterRole clusterroles`, { cluster: true, strategy: roleStrategy }),
  define(`${rbac}/RoleBinding rolebindings`, { strategy: bindingStrategy, table: cluster.bindingShape }),
  define(`${rbac}/Role roles`, { strategy: roleStrategy }),
  define('storage.k8s.io/v1/CSIDriver csidrivers', {
    cluster: true,
    strategy: storage.driverStrategy,
    table: volumes.driverShape,
  }),
  define('storage.k8s.io/v1/StorageClass storageclasses', {
    cluster: true,
    short: ['sc'],
    strategy: storage.storageClassStrategy,
    table: volumes.storageClassShape,
  }),
  define(`${admission}/MutatingWebhookConfiguration mutatingwebhookconfigurations`, {
    cluster: true,
    categories: extensions,
    strategy: webhookStrategy(true),
    table: cluster.webhooksShape,
  }),
  define(`${admission}/ValidatingWebhookConfiguration validatingwebhookconfigurations`, {
    cluster: true,
    categories: extensions,
    strategy: webhookStrategy(false),
    table: cluster.webhooksShape,
  }),
  define('apiextensions.k8s.io/v1/CustomResourceDefinition customresourcedefinitions', {
    cluster: true,
    short: ['crd', 'crds'],
    categories: extensions,
    strategy: crdStrategy,
  }),
  define('scheduling.k8s.io/v1/PriorityClass priorityclasses', {
    cluster: true,
    short: ['pc'],
    table: cluster.priorityClassShape,
  }),
  define('coordination.k8s.io/v1/Lease leases', { strategy: work.leaseStrategy, table: cluster.leaseShape }),
];

const reviews: readonly Resource[] = [
  define('authentication.k8s.io/v1/SelfSubjectReview selfsubjectreviews', { cluster: true, verbs: create }),
  define('authentication.k8s.io/v1/TokenReview tokenreviews', { cluster: true, verbs: create }),
  define('authorization.k8s.io/v1/LocalSubjectAccessReview localsubjectaccessreviews', { verbs: create }),
  define('authorization.k8s.io/v1/SelfSubjectAccessReview selfsubjectaccessreviews', { cluster: true, verbs: create }),
  define('authorization.k8s.io/v1/SelfSubjectRulesReview selfsubjectrulesreviews', { cluster: true, verbs: create }),
  define('authorization.k8s.io/v1/SubjectAccessReview subjectaccessreviews', { cluster: true, verbs: create }),
];

export const builtinResources: readonly Resource[] = [
  ...coreResources,
  ...workloads,
  ...clusterResources,
  ...storedOnly,
  ...reviews,
];

/** Groups in the order in which discovery lists them. */
export const groupOrder: readonly string[] = [
  '',
  'apiregistration.k8s.io',
  'apps',
  'events.k8s.io',
  'authentication.k8s.io',
  'authorization.k8s.io',
  'batch',
  'networking.k8s.io',
  'policy',
  'rbac.authorization.k8s.io',
  'storage.k8s.io',
  'admissionregistration.k8s.io',
  'apiextensions.k8s.io',
  'scheduling.k8s.io',
  'coordination.k8s.io',
  'node.k8s.io',
  'discovery.k8s.io',
];
