// Deletes everything in a namespace and reports what is left. Called by namespaces.ts.
import { type KubeObject, type ResourceType, keyOf } from '#shared/api/object.ts';
import type { KubeClient } from '#shared/clients/kube/client.ts';
import { AppError, isNotFound, messageOf } from '#shared/runtime/errors.ts';
import { type Discovered, kindText } from '#local-cluster/controllers/discovery.ts';
import type { NamespaceContent } from '#local-cluster/controllers/namespace-conditions.ts';

/**
 * One pass; objects with finalizers still exist after it. Groups that do not answer may still contain objects. A rejected deletion stops
 * nothing: a webhook may protect an object only as long as another one of the namespace exists.
 */
export const emptyNamespace = async (
  kube: KubeClient,
  { types, failed }: Discovered,
  namespace: string,
): Promise<NamespaceContent> => {
  const remaining = new Map<string, number>();
  const finalizers = new Map<string, number>();
  const failures: string[] = [];
  for (const type of types.filter(({ namespaced }) => namespaced)) {
    const { left, faults } = await emptyKind(kube, type, namespace);
    failures.push(...faults);
    if (left.length > 0) remaining.set(kindText(type), left.length);
    for (const name of left.flatMap(({ metadata }) => metadata.finalizers ?? [])) {
      finalizers.set(name, (finalizers.get(name) ?? 0) + 1);
    }
  }
  return { remaining, finalizers, failures, unknown: failed.map(({ group, message }) => `${group}: ${message}`) };
};

interface Emptied {
  readonly left: readonly KubeObject[];
  /** Why some of it could not be listed or deleted. */
  readonly faults: readonly string[];
}

const emptyKind = async (kube: KubeClient, type: ResourceType, namespace: string): Promise<Emptied> => {
  try {
    const found = await all(kube, type, namespace);
    const staying = found.filter(({ metadata }) => metadata.deletionTimestamp === undefined);
    if (staying.length === 0) return { left: found, faults: [] };
    const faults: string[] = [];
    for (const object of staying) faults.push(...(await deleteOne(kube, type, object)));
    return { left: await all(kube, type, namespace), faults };
  } catch (error) {
    // The kind itself was deleted.
    if (isNotFound(error)) return { left: [], faults: [] };
    if (error instanceof AppError) return { left: [], faults: [messageOf(error)] };
    throw error;
  }
};

const deleteOne = async (kube: KubeClient, type: ResourceType, object: KubeObject): Promise<readonly string[]> => {
  try {
    await kube.delete(type, keyOf(object), { propagation: 'Background' });
    return [];
  } catch (error) {
    if (error instanceof AppError) return [messageOf(error)];
    throw error;
  }
};

const all = async (kube: KubeClient, type: ResourceType, namespace: string): Promise<readonly KubeObject[]> => {
  const objects: KubeObject[] = [];
  for await (const object of kube.listAll(type, { namespace })) objects.push(object);
  return objects;
};
