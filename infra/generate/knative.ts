// Broker, Triggers and sources under infra/knative. The local broker and forwarder use the same files.
import { type GeneratedManifest, partOf } from '#infra/generate/manifest.ts';
import {
  type DeliveryClass,
  type EventFunction,
  type EventMatch,
  type Subscription,
  backupHolders,
} from '#infra/generate/event-functions.ts';
import { deadLetterFunction, diskUsers, templateHolders } from '#infra/generate/wiring.ts';
import { cdiLabels } from '#shared/api/cdi/names.ts';
import { persistentVolumeClaims, storageClasses } from '#shared/api/foreign/core.ts';
import { labels, optionalSources, systemNamespace } from '#shared/api/names.ts';
import { type ResourceType, apiVersionOf } from '#shared/api/object.ts';

/** Input of the manifests. */
export interface EventSources {
  /** Kinds that users create. */
  readonly objects: readonly ResourceType[];
  /** Kinds that backends create. */
  readonly children: readonly ResourceType[];
}

export const broker = { apiVersion: 'eventing.knative.dev/v1', kind: 'Broker', name: 'bullion' } as const;
/** Service account of the sources; it reads the watched kinds. */
export const sourceAccount = 'sources';

/** Metadata of an object of ours. */
export const named = (name: string, component: string): GeneratedManifest['metadata'] => ({
  name,
  namespace: systemNamespace,
  labels: partOf(component),
});

const serviceRef = (name: string): object => ({ apiVersion: 'serving.knative.dev/v1', kind: 'Service', name });

const deadLetterSink = { ref: serviceRef(deadLetterFunction.name), uri: deadLetterFunction.path };

/**
 * The delivery of a Trigger replaces the Broker's as a whole, so each is complete. `timeout` covers a cold start and one pass. `must` waits 0.5
 * s x 2^(k-1) before retry k: 511 s in all, longer than a restart of a node.
 */
const deliveries: Readonly<Record<DeliveryClass, object>> = {
  must: {
    retry: 10,
    backoffPolicy: 'exponential',
    backoffDelay: 'PT0.5S',
    timeout: 'PT30S',
    deadLetterSink,
  },
  may: {
    retry: 3,
    backoffPolicy: 'exponential',
    backoffDelay: 'PT0.5S',
    timeout: 'PT30S',
    deadLetterSink,
  },
};

/** Maximal accepted `Retry-After`. Eventing rejects the field unless its ConfigMap has `delivery-retryafter: enabled`. */
export const retryAfterMax: Readonly<Record<DeliveryClass, string>> = { must: 'PT60S', may: 'PT5S' };

/** Default delivery of the Broker, for Triggers without their own. */
export const brokerDelivery: DeliveryClass = 'must';

export const buildBroker = (): GeneratedManifest => ({
  apiVersion: broker.apiVersion,
  kind: broker.kind,
  // The in-memory channel then answers before the delivery: a function that is being retried must not block its source for minutes.
  metadata: {
    ...named(broker.name, 'events'),
    annotations: { 'messaging.knative.dev/async-handler': 'true' },
  },
  spec: { delivery: deliveries[brokerDelivery] },
});

/** One condition per element of the list; the event must satisfy all elements. */
const filtersOf = (match: EventMatch, sources: EventSources): readonly object[] => {
  if (match.of === 'types') return [anyOf(match.types.map(typeFilter))];
  if (match.of === 'templates')
    return [{ prefix: { type: 'dev.knative.apiserver.resource.' } }, anyOf(templateHolders.map(kindFilter))];
  if (match.of === 'machines') return [anyOf(changesOf('ref').map(typeFilter)), anyOf(diskUsers.map(kindFilter))];
  if (match.of === 'objects' || match.of === 'kinds') {
    const kinds = match.of === 'kinds' ? match.kinds : sources.objects;
    const byName = kinds.some((kind) => backupHolders.includes(kind)) ? changesOf('ref') : [];
    return [anyOf([...changesOf('resource'), ...byName].map(typeFilter)), anyOf(kinds.map(kindFilter))];
  }
  return [{ prefix: { type: 'dev.knative.apiserver.resource.' } }, anyOf(sources.children.map(kindFilter))];
};

/** Changes of existing objects, sent as a whole or by reference. */
const changesOf = (mode: 'resource' | 'ref'): readonly string[] =>
  ['add', 'update'].map((change) => `dev.knative.apiserver.${mode}.${change}`);

const anyOf = (filters: readonly object[]): object => (filters.length === 1 ? (filters[0] ?? {}) : { any: filters });
const typeFilter = (type: string): object => (type.endsWith('.') ? { prefix: { type } } : { exact: { type } });
const kindFilter = (type: ResourceType): object => ({ exact: { apiversion: apiVersionOf(type), kind: type.kind } });

export const buildTrigger = (
  fn: EventFunction,
  subscription: Subscription,
  sources: EventSources,
): GeneratedManifest => ({
  apiVersion: 'eventing.knative.dev/v1',
  kind: 'Trigger',
  metadata: named(`${fn.name}-${subscription.name}`, fn.name),
  spec: {
    broker: broker.name,
    filters: filtersOf(subscription.events, sources),
    subscriber: { ref: serviceRef(fn.name) },
    delivery: deliveries[subscription.delivery],
  },
});

const toBroker = { ref: broker } as const;

/** `{}` selects every namespace with one watch per kind, including namespaces created later. */
const apiServerSource = (
  name: string,
  resources: readonly object[],
  mode: 'Resource' | 'Reference' = 'Resource',
): GeneratedManifest => ({
  apiVersion: 'sources.knative.dev/v1',
  kind: 'ApiServerSource',
  metadata: named(name, 'events'),
  spec: { serviceAccountName: sourceAccount, mode, namespaceSelector: {}, resources, sink: toBroker },
});

/** Whether every cluster has the kind: it belongs to Kubernetes, or is installed with Bullion. */
const isAlwaysThere = ({ group }: ResourceType, { objects }: EventSources): boolean =>
  !group.includes('.') || group === storageClasses.group || objects.some((served) => served.group === group);

/** Children are selected by their label, so that Jobs and claims of others cause no events. */
const childResource = (type: ResourceType): object => ({
  apiVersion: apiVersionOf(type),
  kind: type.kind,
  selector: { matchExpressions: [{ key: labels.ownerUid, operator: 'Exists' }] },
});

/** Claims that users create for an upload, with the label of `virtctl image-upload`. Our own have an owner and are covered above. */
const uploadClaims = {
  apiVersion: apiVersionOf(persistentVolumeClaims),
  kind: persistentVolumeClaims.kind,
  selector: {
    matchExpressions: [
      { key: cdiLabels.applyProfile, operator: 'Exists' },
      { key: labels.ownerUid, operator: 'DoesNotExist' },
    ],
  },
};

/** Served kinds are already watched, labelled or not: Triggers filter by kind, and a second watch would send each change twice. */
export const watchedChildren = ({ objects, children }: EventSources): readonly ResourceType[] =>
  children.filter(({ group, kind }) => !objects.some((served) => served.group === group && served.kind === kind));

export const buildApiServerSources = (sources: EventSources): readonly GeneratedManifest[] => [
  apiServerSource(
    'objects',
    sources.objects.map((type) => ({ apiVersion: apiVersionOf(type), kind: type.kind })),
  ),
  apiServerSource('children', [
    ...watchedChildren(sources)
      .filter((type) => isAlwaysThere(type, sources))
      .map(childResource),
    uploadClaims,
  ]),
];

/**
 * One for each kind that a cluster may not have. They are not installed directly: Knative's adapter exits if the API group of a kind is not
 * served, and never watches a kind that is added to a group later. cron-tick creates each one when its kind is served.
 */
export const buildOptionalSources = (sources: EventSources): readonly GeneratedManifest[] => [
  ...watchedChildren(sources)
    .filter((type) => !isAlwaysThere(type, sources))
    .map((type) => asOptional(apiServerSource(`children-${type.group.split('.')[0] ?? ''}`, [childResource(type)]))),
  ...templateHolders.map((type) => optionalSource('templates', type, 'Resource')),
  ...backupHolders.map((type) => optionalSource('backups', type, 'Reference')),
  ...diskUsers.map((type) => optionalSource('machines', type, 'Reference')),
];

const optionalSource = (group: string, type: ResourceType, mode: 'Resource' | 'Reference'): GeneratedManifest => {
  const name = `${group}-${type.kind.toLowerCase()}`;
  return asOptional(apiServerSource(name, [{ apiVersion: apiVersionOf(type), kind: type.kind }], mode));
};

const asOptional = (source: GeneratedManifest): GeneratedManifest => ({
  ...source,
  metadata: { ...source.metadata, labels: { ...source.metadata.labels, [labels.optional]: 'true' } },
});

export const buildOptionalList = (sources: EventSources): GeneratedManifest => ({
  apiVersion: 'v1',
  kind: 'ConfigMap',
  metadata: named(optionalSources, 'events'),
  data: Object.fromEntries(
    buildOptionalSources(sources).map((source) => [
      `${source.metadata.name}.json`,
      `${JSON.stringify(source, undefined, 2)}\n`,
    ]),
  ),
});

export const buildPingSource = (): GeneratedManifest => ({
  apiVersion: 'sources.knative.dev/v1',
  kind: 'PingSource',
  metadata: named('tick', 'events'),
  spec: {
    schedule: '* * * * *',
    timezone: 'Etc/UTC',
    contentType: 'application/json',
    data: JSON.stringify({ job: 'sweep' }),
    sink: toBroker,
  },
});

/** Sets K_SINK, the URL for its own events, in every event function. */
export const buildSinkBinding = (): GeneratedManifest => ({
  apiVersion: 'sources.knative.dev/v1',
  kind: 'SinkBinding',
  metadata: named('functions', 'events'),
  spec: {
    subject: {
      apiVersion: 'serving.knative.dev/v1',
      kind: 'Service',
      selector: { matchLabels: { 'app.kubernetes.io/part-of': 'bullion' } },
    },
    sink: toBroker,
  },
});
