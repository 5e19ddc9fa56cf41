// What `bullion doctor` reads, with the rights of who asks: a kind that may not be listed is reported as such.
import { mutatingWebhookConfigurations, validatingWebhookConfigurations } from '#shared/api/foreign/admission.ts';
import type { WebhookConfiguration } from '#shared/api/foreign/admission.ts';
import { type Deployment, deployments } from '#shared/api/foreign/apps.ts';
import { type StorageClass, storageClasses } from '#shared/api/foreign/core.ts';
import { type VolumeSnapshotClass, volumeSnapshotClasses } from '#shared/api/foreign/snapshot.ts';
import type { StatusCondition } from '#shared/api/conditions.ts';
import { servedKinds } from '#shared/api/kinds.ts';
import type { AnyImage } from '#shared/catalogue/image.ts';
import { type Read, readAll, readOr, withDetail } from '#shared/catalogue/objects.ts';
import { systemNamespace } from '#shared/api/names.ts';
import type { KubeObject, ResourceType } from '#shared/api/object.ts';
import { type Trouble, troubleOf } from '#cli/doctor/trouble.ts';
import { partOfUs } from '#cli/uninstall/objects.ts';
import { readLimits } from '#shared/populate/queue/limits.ts';
import type { KubeClient } from '#shared/clients/kube/client.ts';

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

export interface Installation {
  readonly kinds: readonly ObservedKind[];
  readonly mutating: Read<WebhookConfiguration>;
  readonly validating: Read<WebhookConfiguration>;
  readonly deployments: Read<Deployment>;
  readonly knative: readonly { readonly kind: string; readonly objects: Read<KnativeObject> }[];
  readonly classes: Read<StorageClass>;
  readonly snapshotClasses: Read<VolumeSnapshotClass>;
  /** What is wrong with the limits on transfers. */
  readonly limitFaults: Read<string>;
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
  const [kinds, mutating, validating, workloads, knative, classes, snapshotClasses, limitFaults] = await Promise.all([
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
    readOr(async () => (await readLimits(kube))?.faults ?? []),
  ]);
  return { kinds, mutating, validating, deployments: workloads, knative, classes, snapshotClasses, limitFaults };
};
