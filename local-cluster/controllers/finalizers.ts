// Finalizers, put on and taken off without losing a race. Called by the controllers.
import { type KubeObject, type ResourceType, keyOf } from '#shared/api/object.ts';
import type { KubeClient } from '#shared/clients/kube/client.ts';
import { isNotFound } from '#shared/runtime/errors.ts';

/** Puts a finalizer on an object that lacks it; Conflict when the object changed meanwhile. */
export const holdFinalizer = async <T extends KubeObject>(
  kube: KubeClient,
  ...[type, object, finalizer]: [ResourceType<T>, T, string]
): Promise<void> => {
  const { uid, resourceVersion, finalizers = [] } = object.metadata;
  if (finalizers.includes(finalizer)) return;
  const metadata = { uid, resourceVersion, finalizers: [...finalizers, finalizer] };
  await kube.mergePatch(type, keyOf(object), { metadata });
};

/** Takes finalizers off an object; fine when it is gone, Conflict when it changed meanwhile. */
export const dropFinalizers = async <T extends KubeObject>(
  kube: KubeClient,
  ...[type, object, dropped]: [ResourceType<T>, T, readonly string[]]
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
