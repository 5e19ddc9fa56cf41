// Deletes everything in a namespace and tells what is left. Called by namespaces.ts.
import { type KubeObject, type ResourceType, keyOf } from '#shared/api/object.ts';
import type { KubeClient } from '#shared/clients/kube/client.ts';
import { isNotFound } from '#shared/runtime/errors.ts';
import { type Discovered, kindText } from '#infra/local/controllers/discovery.ts';
import type { NamespaceContent } from '#infra/local/controllers/namespace-conditions.ts';

/** One pass; what waits for finalizers is there after it. Groups that do not answer may still hold something. */
export const emptyNamespace = async (
  kube: KubeClient,
  { types, failed }: Discovered,
  namespace: string,
): Promise<NamespaceContent> => {
  const remaining = new Map<string, number>();
  const finalizers = new Map<string, number>();
  for (const type of types.filter(({ namespaced }) => namespaced)) {
    const left = await emptyKind(kube, type, namespace);
    if (left.length > 0) remaining.set(kindText(type), left.length);
    for (const name of left.flatMap(({ metadata }) => metadata.finalizers ?? [])) {
      finalizers.set(name, (finalizers.get(name) ?? 0) + 1);
    }
  }
  return { remaining, finalizers, unknown: failed.map(({ group, message }) => `${group}: ${message}`) };
};

const emptyKind = async (kube: KubeClient, type: ResourceType, namespace: string): Promise<readonly KubeObject[]> => {
  try {
    let deleted = 0;
    const leaving: KubeObject[] = [];
    for await (const object of kube.listAll(type, { namespace })) {
      if (object.metadata.deletionTimestamp !== undefined) leaving.push(object);
      else {
        await kube.delete(type, keyOf(object), { propagation: 'Background' });
        deleted += 1;
      }
    }
    return deleted === 0 ? leaving : await all(kube, type, namespace);
  } catch (error) {
    // The kind itself is gone.
    if (isNotFound(error)) return [];
    throw error;
  }
};

const all = async (kube: KubeClient, type: ResourceType, namespace: string): Promise<readonly KubeObject[]> => {
  const objects: KubeObject[] = [];
  for await (const object of kube.listAll(type, { namespace })) objects.push(object);
  return objects;
};
