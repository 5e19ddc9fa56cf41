// What `bullion doctor` reads, with the rights of who asks: a kind that may not be listed is reported as such.
import { whyName } from '#cli/output.ts';
import { partOfUs } from '#cli/uninstall.ts';
import { findCondition, type StatusCondition } from '#shared/api/conditions.ts';
import { type StorageClass, storageClasses } from '#shared/api/foreign/core.ts';
import {
  type Deployment,
  deployments,
  mutatingWebhookConfigurations,
  validatingWebhookConfigurations,
  type WebhookConfiguration,
} from '#shared/api/foreign/kubernetes.ts';
import { type VolumeSnapshotClass, volumeSnapshotClasses } from '#shared/api/foreign/snapshot.ts';
import { servedKinds } from '#shared/api/kinds.ts';
import { registriesConfig, systemNamespace, transferQueue } from '#shared/api/names.ts';
import type { KubeObject, ResourceType } from '#shared/api/object.ts';
import { type AnyImage, type Found, hasFailed, readyOf } from '#shared/catalogue/image.ts';
import { type Read, readAll, readOr, withDetail } from '#shared/catalogue/objects.ts';
import type { KubeClient } from '#shared/clients/kube/client.ts';
import { readLimits } from '#shared/populate/queue/limits.ts';
import { readRegistries } from '#shared/resources/cdi-config/look.ts';
import { toSpan } from '#shared/runtime/age.ts';

// What is wrong with one object, from its own status: it failed, nothing has looked at it, or its deletion does not end. Pure.

/** Milliseconds in which a function must have written a status: one that starts from zero takes seconds. Lost events are repaired later, by the next sweep. */
const longestUnobserved = 3 * 60_000;
/** Milliseconds after which a deletion has not ended by itself. */
const longestDeletion = 10 * 60_000;

interface Trouble {
  readonly is: 'failed' | 'unobserved' | 'deleting';
  /** `hypercloud/jammy -n vms`, `datavolume/root -n vms`: as `bullion why` takes it. */
  readonly object: string;
  readonly message: string;
}

const nameOf = (found: Found): string => {
  const { namespace } = found.image.metadata;
  return `${whyName(found)}${namespace === undefined ? '' : ` -n ${namespace}`}`;
};

const since = (time: string | undefined, now: number): number => now - Date.parse(time ?? '');

/** A claim still held by a running pod is deleted when that ends: the finalizers say who is waited for. */
const deletingOf = ({ metadata }: KubeObject, now: number): string | undefined => {
  const span = since(metadata.deletionTimestamp, now);
  if (!(span > longestDeletion)) return undefined;
  return `is being deleted for ${toSpan(span)}, held by ${metadata.finalizers?.join(', ') ?? 'nothing'}`;
};

const wordsOf = ({ reason, message }: Partial<StatusCondition> = {}): string | undefined =>
  reason === undefined || message === undefined ? (message ?? reason) : `${reason}: ${message}`;

const failureOf = (found: Found): string | undefined => {
  const degraded = findCondition(found.image.status?.conditions, 'Degraded');
  if (degraded?.status === 'True') return wordsOf(degraded) ?? 'is degraded';
  return hasFailed(found) ? (wordsOf(readyOf(found)) ?? 'failed') : undefined;
};

/** `undefined`: nothing that its owner would have to look at. `now`: milliseconds since 1970. */
export const troubleOf = (found: Found, now: number): Trouble | undefined => {
  const { image } = found;
  const trouble = (is: Trouble['is'], message: string): Trouble => ({ is, object: nameOf(found), message });
  const deleting = deletingOf(image, now);
  if (deleting !== undefined) return trouble('deleting', deleting);
  const failure = failureOf(found);
  if (failure !== undefined) return trouble('failed', failure);
  const age = since(image.metadata.creationTimestamp, now);
  const isObserved = image.status !== undefined || image.metadata.deletionTimestamp !== undefined;
  return isObserved || !(age > longestUnobserved)
    ? undefined
    : trouble('unobserved', `was created ${toSpan(age)} ago, and no function has written its status`);
};

/** An object of Knative: whether it works is in its condition Ready. */
export interface KnativeObject extends KubeObject {
  readonly status?: { readonly conditions?: readonly StatusCondition[] };
}

const knativeType = (group: string, kind: string): ResourceType<KnativeObject> => ({
  group,
  version: 'v1',
  kind,
  plural: `${kind.toLowerCase()}s`,
  namespaced: true,
});

const knativeTypes = [
  knativeType('serving.knative.dev', 'Service'),
  knativeType('eventing.knative.dev', 'Broker'),
  knativeType('eventing.knative.dev', 'Trigger'),
  knativeType('sources.knative.dev', 'ApiServerSource'),
  knativeType('sources.knative.dev', 'PingSource'),
] as const;

/** Objects of one served kind. */
export interface ObservedKind {
  readonly type: ResourceType;
  readonly troubles: Read<Trouble>;
  readonly count: number;
}

/** What cannot be read of a ConfigMap that an operator writes. */
export interface ConfigFault {
  readonly configMap: string;
  readonly message: string;
}

const configFaultsOf = async (kube: KubeClient): Promise<readonly ConfigFault[]> => {
  const [limits, registries] = await Promise.all([readLimits(kube), readRegistries(kube)]);
  const messages = [
    ...(limits?.faults ?? []).map((message) => [transferQueue, message] as const),
    ...[registries.registryFault, registries.mirrorFault].flatMap((fault) =>
      fault === undefined ? [] : [[registriesConfig.name, fault] as const],
    ),
  ];
  return messages.map(([configMap, message]) => ({ configMap, message }));
};

export interface Installation {
  readonly kinds: readonly ObservedKind[];
  readonly mutating: Read<WebhookConfiguration>;
  readonly validating: Read<WebhookConfiguration>;
  readonly deployments: Read<Deployment>;
  readonly knative: readonly { readonly kind: string; readonly objects: Read<KnativeObject> }[];
  readonly classes: Read<StorageClass>;
  readonly snapshotClasses: Read<VolumeSnapshotClass>;
  readonly configFaults: Read<ConfigFault>;
}

/** `namespace`: the only one to look in; left out: all of them. Keeps what is wrong, not every object. */
const observeKind = async (
  kube: KubeClient,
  type: ResourceType<AnyImage>,
  { namespace, now }: { readonly namespace: string | undefined; readonly now: number },
): Promise<ObservedKind> => {
  let count = 0;
  const troubles = await readOr(async () => {
    const found: Trouble[] = [];
    for await (const image of kube.listAll(type, { namespace: type.namespaced ? namespace : undefined })) {
      count += 1;
      const trouble = troubleOf({ type, image: withDetail(image) }, now);
      if (trouble !== undefined) found.push(trouble);
    }
    return found;
  });
  return { type, troubles, count };
};

export const observeInstallation = async (
  kube: KubeClient,
  around: { readonly namespace: string | undefined; readonly now: number },
): Promise<Installation> => {
  const ours = { labelSelector: partOfUs };
  const [kinds, mutating, validating, workloads, knative, classes, snapshotClasses, configFaults] = await Promise.all([
    Promise.all(servedKinds.map(({ type }) => observeKind(kube, type, around))),
    readAll(kube, mutatingWebhookConfigurations, ours),
    readAll(kube, validatingWebhookConfigurations, ours),
    readAll(kube, deployments, { namespace: systemNamespace, ...ours }),
    Promise.all(
      knativeTypes.map(async (type) => ({
        kind: type.kind,
        objects: await readAll(kube, type, { namespace: systemNamespace, ...ours }),
      })),
    ),
    readAll(kube, storageClasses),
    readAll(kube, volumeSnapshotClasses),
    readOr(() => configFaultsOf(kube)),
  ]);
  return { kinds, mutating, validating, deployments: workloads, knative, classes, snapshotClasses, configFaults };
};
