// Service accounts and roles under infra/rbac: one account per function, with only the verbs of its declarations.
import { sourceAccount } from '#infra/generate/knative.ts';
import { type GeneratedManifest, partOf } from '#infra/generate/manifest.ts';
import { type EventFunction, type ApiVerb } from '#infra/generate/event-functions.ts';
import {
  admissionLookups,
  deadLetterFunction,
  diskUsers,
  pollLookups,
  templateHolders,
} from '#infra/generate/wiring.ts';
import { goldenImagePolicyKind } from '#shared/api/bullion/golden-image-policy.ts';
import { tenantLimitKind } from '#shared/api/bullion/tenant-limit.ts';
import { cdis, hyperConvergeds } from '#shared/api/foreign/boot-sources.ts';
import { cdiConfigs } from '#shared/api/cdi/cdi-config.ts';
import { dataImportCronKind } from '#shared/api/cdi/data-import-cron.ts';
import { storageProfileKind } from '#shared/api/cdi/storage-profile.ts';
import { volumeSnapshotClasses } from '#shared/api/foreign/snapshot.ts';
import { dataSourceKind } from '#shared/api/cdi/data-source.ts';
import { harvesterSettings, virtualMachineBackups } from '#shared/api/foreign/backup.ts';
import { leases, subjectAccessReviews, tokenReviews } from '#shared/api/foreign/kubernetes.ts';
import {
  configMaps,
  csiDrivers,
  jobs,
  kubeEvents,
  namespaces,
  nodes,
  persistentVolumeClaims,
  pods,
  priorityClasses,
  secrets,
} from '#shared/api/foreign/core.ts';
import { virtualMachineInstances } from '#shared/api/foreign/kubevirt.ts';
import { downloaderKind } from '#shared/api/harvester/downloader.ts';
import { dataVolumeKind } from '#shared/api/cdi/data-volume.ts';
import { harvesterImageKind } from '#shared/api/harvester/image.ts';
import { keysSecretName } from '#shared/exchange/access/keys.ts';
import {
  admissionCertificate,
  optionalSources,
  registriesConfig,
  systemNamespace,
  tenantLimits,
  transferQueue,
} from '#shared/api/names.ts';
import type { ResourceType } from '#shared/api/object.ts';
import { apiServerSources } from '#shared/resources/event-sources.ts';
import { trustSetting } from '#shared/resources/network-settings.ts';

/** A kind of child, and its verbs besides reading. */
export interface ChildAccess {
  readonly type: ResourceType;
  readonly verbs: readonly ApiVerb[];
}

export interface Rule {
  readonly apiGroups: readonly string[];
  readonly resources: readonly string[];
  readonly verbs: readonly ApiVerb[];
  /** Default: all objects. */
  readonly resourceNames?: readonly string[];
}

export const rule = (type: ResourceType, verbs: readonly ApiVerb[], subresource?: string): Rule => ({
  apiGroups: [type.group],
  resources: [subresource === undefined ? type.plural : `${type.plural}/${subresource}`],
  verbs: [...new Set(verbs)],
});

const uniqueTypes = (types: readonly ResourceType[]): readonly ResourceType[] => [
  ...new Map(types.map((type) => [`${type.plural}.${type.group}`, type])).values(),
];

/** Account, role and binding with the same name. */
export const grant = (name: string, rules: readonly Rule[]): readonly GeneratedManifest[] => [
  {
    apiVersion: 'v1',
    kind: 'ServiceAccount',
    metadata: { name, namespace: systemNamespace, labels: partOf(name) },
  },
  {
    apiVersion: 'rbac.authorization.k8s.io/v1',
    kind: 'ClusterRole',
    metadata: { name: `bullion-${name}`, labels: partOf(name) },
    rules,
  },
  {
    apiVersion: 'rbac.authorization.k8s.io/v1',
    kind: 'ClusterRoleBinding',
    metadata: { name: `bullion-${name}`, labels: partOf(name) },
    roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name: `bullion-${name}` },
    subjects: [{ kind: 'ServiceAccount', name, namespace: systemNamespace }],
  },
];

/** In addition to its verbs on served kinds. Of operators' objects only one field is written. */
const templateRules: readonly Rule[] = [
  // The generated schedule of the common images, stored in the same field as by the operator.
  rule(hyperConvergeds, ['patch'], 'status'),
  ...[...templateHolders, nodes].map((type) => rule(type, ['list'])),
  // To detect an Event that was already recorded.
  rule(kubeEvents, ['get']),
  ...[dataImportCronKind.type, dataSourceKind.type].map((type) => rule(type, ['create', 'delete'])),
  rule(namespaces, ['get', 'create']),
];

/** Only the status of these is written: they have no finalizers and wait for no other object. */
const statusOnly = new Set([
  storageProfileKind.type.plural,
  goldenImagePolicyKind.type.plural,
  tenantLimitKind.type.plural,
]);

/** Verbs for kinds that are only read, if not all read verbs are required. */
const readings: Readonly<Record<string, readonly ApiVerb[]>> = {
  [kubeEvents.plural]: ['list'],
  [virtualMachineBackups.plural]: ['list'],
  [csiDrivers.plural]: ['get'],
  [volumeSnapshotClasses.plural]: ['list'],
  // Those that limits select: listed by the tick.
  [namespaces.plural]: ['get', 'list'],
  [virtualMachineInstances.plural]: ['list'],
};

/** Kinds that drivers of images use. */
export interface DriverScope {
  readonly objects: readonly ResourceType[];
  /** Those of them with children whose owner reference blocks their deletion. */
  readonly owners: readonly ResourceType[];
  readonly children: readonly ChildAccess[];
  readonly made: readonly ChildAccess[];
  readonly reads: readonly ResourceType[];
}

/**
 * A function that reconciles images. Finalizers are patched, status is replaced; `finalizers` must be updatable for owner references that block
 * deletion, if the cluster enforces that.
 */
export const buildDriverAccess = (
  fn: EventFunction,
  { objects, owners, children, made, reads }: DriverScope,
): readonly GeneratedManifest[] =>
  grant(fn.name, [
    ...objects.flatMap((type) => [
      rule(type, statusOnly.has(type.plural) ? ['get', 'list'] : ['get', 'list', 'patch']),
      rule(type, ['update'], 'status'),
    ]),
    ...owners.map((type) => rule(type, ['update'], 'finalizers')),
    ...[...children, ...made].map(({ type, verbs }) => rule(type, ['get', ...verbs])),
    ...reads.map((type) => rule(type, readings[type.plural] ?? ['get', 'list'])),
    // A transfer is created suspended, and resumed once its Secret exists; interrupted ones are found by their label.
    rule(jobs, ['list', 'patch']),
    rule(secrets, ['create']),
    // Detects whether a CDI is installed.
    rule(cdis, ['list']),
    // Additional CA certificates of Harvester's administrators.
    only(rule(harvesterSettings, ['get']), trustSetting),
    // File system overhead and registries, set by administrators.
    rule(cdiConfigs, ['get']),
    rule(configMaps, ['create']),
    // Limits on transfers, and the priority of those that wait; mirrors of registries.
    only(rule(configMaps, ['get']), transferQueue),
    only(rule(configMaps, ['get']), registriesConfig.name),
    rule(priorityClasses, ['list']),
    ...(fn.polls ? pollLookups.map((type) => rule(type, ['get'])) : []),
    // Leases of unique names, held before the first child is created; and of the fetcher of an image.
    rule(leases, ['get', 'create', 'update', 'patch', 'delete']),
    ...(fn.carriesOutTemplates ? templateRules : []),
    // Their requested disks.
    ...(fn.machines === undefined ? [] : diskUsers.map((type) => rule(type, fn.machines ?? []))),
    // Whether the service account of a cron may clone a volume of another namespace.
    rule(subjectAccessReviews, ['create']),
    // The limits of a namespace, for its users.
    ...(fn.tells ? [only(rule(configMaps, ['get', 'patch', 'delete']), tenantLimits)] : []),
    ...(fn.tells ? [rule(cdiConfigs, ['list', 'create']), rule(cdiConfigs, ['update'], 'status')] : []),
    // Repeated dead letters of an object, and polls of a cron, are counted in one Event.
    rule(kubeEvents, fn.polls || fn.name === deadLetterFunction.name ? ['get', 'create', 'patch'] : ['create']),
  ]);

/** A function that declares its permissions itself. */
export const buildOwnAccess = (
  name: string,
  access: NonNullable<EventFunction['access']>,
): readonly GeneratedManifest[] => {
  const rulesOf = (isOwn: boolean) =>
    access
      .filter((one) => (one.isOwn ?? false) === isOwn)
      .map(({ type, verbs, subresource }) => rule(type, verbs, subresource));
  const own = rulesOf(true);
  const manifests = grant(name, rulesOf(false));
  return own.length === 0 ? manifests : [...manifests, ...grantInOwn(name, own)];
};

/** Permissions in our own namespace only. */
export const grantInOwn = (name: string, rules: readonly Rule[]): readonly GeneratedManifest[] => [
  {
    apiVersion: 'rbac.authorization.k8s.io/v1',
    kind: 'Role',
    metadata: { name: `bullion-${name}`, namespace: systemNamespace, labels: partOf(name) },
    rules,
  },
  bindRole(name, systemNamespace, `bullion-${name}`),
];

/** The sources only read the watched kinds. */
export const buildSourceAccess = (watched: readonly ResourceType[]): readonly GeneratedManifest[] =>
  grant(
    sourceAccount,
    uniqueTypes(watched).map((type) => rule(type, ['get', 'list', 'watch'])),
  );

/** `owners` may have golden children, `needed` determine whether a backend is available. */
export const buildAdmissionAccess = (
  owners: readonly ResourceType[],
  needed: readonly ResourceType[],
): readonly GeneratedManifest[] =>
  grant('admission', [
    ...owners.map((type) => rule(type, ['get'])),
    ...needed.map((type) => rule(type, ['list'])),
    ...admissionLookups.map(({ type, verbs }) => rule(type, verbs)),
    rule(cdis, ['list']),
    // Whether the author of an object may use its sources.
    rule(subjectAccessReviews, ['create']),
  ]).concat(grantInOwn('admission', [only(rule(secrets, ['get']), admissionCertificate.serverSecret)]));

/** Restricts a rule to one object. */
const only = (base: Rule, name: string): Rule => ({ ...base, resourceNames: [name] });

/** cron-tick creates the sources of optional kinds in our own namespace. */
export const buildEventSourceAccess = (): readonly GeneratedManifest[] => {
  const name = 'bullion-event-sources';
  const metadata = { name, namespace: systemNamespace, labels: partOf('cron-tick') };
  const subjects = [{ kind: 'ServiceAccount', name: 'cron-tick', namespace: systemNamespace }];
  const roleRef = { apiGroup: 'rbac.authorization.k8s.io', kind: 'Role', name };
  const rules = [
    rule(apiServerSources, ['list', 'create', 'patch', 'delete']),
    only(rule(configMaps, ['get']), optionalSources),
  ];
  return [
    { apiVersion: 'rbac.authorization.k8s.io/v1', kind: 'Role', metadata, rules },
    { apiVersion: 'rbac.authorization.k8s.io/v1', kind: 'RoleBinding', metadata, roleRef, subjects },
  ];
};

const bindRole = (name: string, namespace: string, role: string): GeneratedManifest => ({
  apiVersion: 'rbac.authorization.k8s.io/v1',
  kind: 'RoleBinding',
  metadata: { name: `bullion-${name}-${namespace}`, namespace, labels: partOf(name) },
  roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'Role', name: role },
  subjects: [{ kind: 'ServiceAccount', name, namespace: systemNamespace }],
});

/** It acts for users whose permissions it has checked. Its own keys are the only Secret it may read. */
export const buildTransferAccess = (name: string, reads: readonly ResourceType[]): readonly GeneratedManifest[] => [
  ...grant(name, [
    ...[tokenReviews, subjectAccessReviews].map((type) => rule(type as ResourceType, ['create'])),
    ...reads.map((type) => rule(type, ['get'])),
    // Announcement of an upload, and restart for it.
    rule(harvesterImageKind.type, ['patch']),
    rule(dataVolumeKind.type, ['patch']),
    rule(downloaderKind.type, ['get', 'delete']),
    rule(pods, ['list']),
    rule(jobs, ['get', 'create', 'patch', 'delete']),
    // For its Jobs; it cannot read them.
    rule(secrets, ['create']),
    // Its Jobs are owned by the objects they serve, with a blocking owner reference: this requires a separate permission if the cluster
    // enforces it.
    ...[harvesterImageKind.type, persistentVolumeClaims].map((type) =>
      rule(type as ResourceType, ['update'], 'finalizers'),
    ),
  ]),
  // Creation cannot be restricted by name.
  ...grantInOwn(name, [rule(secrets, ['create']), only(rule(secrets, ['get', 'update']), keysSecretName)]),
  // Reads the client CA of the front proxy, as every extension server does.
  bindRole(name, 'kube-system', 'extension-apiserver-authentication-reader'),
];
