// Broker, Triggers and sources under infra/knative. The local broker and forwarder route by the same files.
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

/** What the manifests are made for. */
export interface EventSources {
  /** Kinds that users write. */
  readonly objects: readonly ResourceType[];
  /** Kinds that backends make. */
  readonly children: readonly ResourceType[];
}

export const broker = { apiVersion: 'eventing.knative.dev/v1', kind: 'Broker', name: 'bullion' } as const;
/** Service account of the sources; it reads what they watch. */
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
 * Trigger delivery replaces the Broker's as a whole, so each is complete. `timeout` covers a cold start and one pass. `must` waits
 * 0.5 s x 2^(k-1) before retry k: 511 s in all, longer than a node takes to come back.
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

/** Longest `Retry-After` that is waited for. Eventing refuses the field unless its ConfigMap has `delivery-retryafter: enabled`. */
export const retryAfterMax: Readonly<Record<DeliveryClass, string>> = { must: 'PT60S', may: 'PT5S' };

/** As a Broker delivers what no Trigger says better. */
export const brokerDelivery: DeliveryClass = 'must';

export const buildBroker = (): GeneratedManifest => ({
  apiVersion: broker.apiVersion,
  kind: broker.kind,
  // The in-memory channel then answers before it delivers: a function that is being retried must not hold up its source for minutes.
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

/** Of what is there, as a source tells it whole or by name. */
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

/** `{}` selects every namespace with one watch per kind and survives new namespaces without a restart. */
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

/** Whether every cluster has the kind: it is Kubernetes' own, or installed with us. */
const isAlwaysThere = ({ group }: ResourceType, { objects }: EventSources): boolean =>
  !group.includes('.') || group === storageClasses.group || objects.some((served) => served.group === group);

/** Children are told from everybody else's objects by their label, so that no stranger's Job or PVC becomes an event. */
const childResource = (type: ResourceType): object => ({
  apiVersion: apiVersionOf(type),
  kind: type.kind,
  selector: { matchExpressions: [{ key: labels.ownerUid, operator: 'Exists' }] },
});

/** Claims that people make to upload into, as `virtctl image-upload` labels them. Ours have an owner, and are told of above. */
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

/** What we serve is watched as such already, labelled or not: Triggers go by the kind, and a second watch would bring each change twice. */
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
 * One for each kind that a cluster may lack. None is installed as such: Knative's adapter ends where a kind's group is not served, and never watches a kind that
 * comes to a group later. cron-tick makes each once its kind is served.
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

/** Gives every event function K_SINK, the URL it sends its own events to. */
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
