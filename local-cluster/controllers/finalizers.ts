// Adds and removes finalizers with a check for conflicts. Called by the controllers.
import { type KubeObject, type ResourceType, keyOf } from '#shared/api/object.ts';
import type { KubeClient } from '#shared/clients/kube/client.ts';
import { isNotFound } from '#shared/runtime/errors.ts';
import { type Pod, type PersistentVolumeClaim, persistentVolumeClaims, pods } from '#shared/api/foreign/core.ts';
import { type Controller, type ControllerContext, startController } from '#local-cluster/controllers/controller.ts';
import { keyOfText, textOf } from '#local-cluster/controllers/informer.ts';

/** Adds a missing finalizer to an object; Conflict when the object changed meanwhile. */
export const holdFinalizer = async <T extends KubeObject>(
  kube: KubeClient,
  type: ResourceType<T>,
  object: T,
  finalizer: string,
): Promise<void> => {
  const { uid, resourceVersion, finalizers = [] } = object.metadata;
  if (finalizers.includes(finalizer)) return;
  const metadata = { uid, resourceVersion, finalizers: [...finalizers, finalizer] };
  await kube.mergePatch(type, keyOf(object), { metadata });
};

/** Removes finalizers from an object; does nothing when it is deleted, Conflict when it changed meanwhile. */
export const dropFinalizers = async <T extends KubeObject>(
  kube: KubeClient,
  type: ResourceType<T>,
  object: T,
  dropped: readonly string[],
): Promise<void> => {
  const { uid, resourceVersion, finalizers = [] } = object.metadata;
  const kept = finalizers.filter((finalizer) => !dropped.includes(finalizer));
  if (kept.length === finalizers.length) return;
  try {
    await kube.mergePatch(type, keyOf(object), { metadata: { uid, resourceVersion, finalizers: kept } });
  } catch (error) {
    if (!isNotFound(error)) throw error;
  }
};

/** Keeps a claim until no pod refers to it any more, as Kubernetes does: even a pod that has ended, until it is deleted. */
const protection = 'kubernetes.io/pvc-protection';

export const startClaimProtection = (context: ControllerContext): Controller =>
  startController(
    {
      ...context,
      name: 'claim-protection',
      reconcile: async (key) => {
        const claim = await context.kube.get(persistentVolumeClaims, keyOfText(key));
        if (claim === undefined) return undefined;
        if (claim.metadata.deletionTimestamp === undefined) {
          await holdFinalizer(context.kube, persistentVolumeClaims, claim, protection);
        } else if (!(await isUsed(context.kube, claim))) {
          await dropFinalizers(context.kube, persistentVolumeClaims, claim, [protection]);
        }
        return undefined;
      },
    },
    ({ watch }) => {
      watch(persistentVolumeClaims, (claim) => [textOf(claim.metadata)]);
      watch(pods, (pod) => claimsOf(pod).map((name) => textOf({ namespace: pod.metadata.namespace, name })));
    },
  );

const claimsOf = (pod: Pod): readonly string[] =>
  (pod.spec.volumes ?? []).flatMap(({ persistentVolumeClaim: claim }) =>
    claim === undefined ? [] : [claim.claimName],
  );

/** Reads from the server and not from the cache: a pod created a moment ago counts. */
const isUsed = async (kube: KubeClient, { metadata }: PersistentVolumeClaim): Promise<boolean> => {
  const { items } = await kube.list(pods, { namespace: metadata.namespace });
  return items.some((pod) => claimsOf(pod).includes(metadata.name));
};
