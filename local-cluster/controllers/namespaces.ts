// Empties a namespace that is being deleted and removes its finalizer; creates the default service account of a new one.
import { type Controller, type ControllerContext, startController } from './controller.ts';
import { discover, type Discovered, kindText } from './discovery.ts';
import { isEmptied, isSameConditions, type NamespaceContent, toConditions } from './namespace-conditions.ts';
import { type Namespace, namespaces } from '#shared/api/foreign/core.ts';
import { keyOf, type KubeObject, type ResourceType } from '#shared/api/object.ts';
import type { KubeClient } from '#shared/clients/kube/client.ts';
import { AppError, Denied, isConflict, isNotFound, messageOf } from '#shared/runtime/errors.ts';

// Deletes everything in a namespace and reports what is left.

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

const serviceAccounts: ResourceType = {
  group: '',
  version: 'v1',
  kind: 'ServiceAccount',
  plural: 'serviceaccounts',
  namespaced: true,
};

/** Milliseconds between checks of a namespace that is not empty yet. */
const againMs = 500;

/** Milliseconds for which the result of discovery is cached. */
const discoveryMs = 1000;

interface Terminator {
  readonly kube: KubeClient;
  readonly discovered: () => Promise<Discovered>;
}

export const startNamespaceController = (context: ControllerContext): Controller => {
  const terminator = { kube: context.kube, discovered: createDiscovery(context.kube) };
  return startController(
    {
      ...context,
      name: 'namespaces',
      reconcile: async (name) => {
        const namespace = await context.kube.get(namespaces, { name });
        if (namespace === undefined) return undefined;
        if (namespace.metadata.deletionTimestamp !== undefined) return terminate(terminator, namespace);
        await ensureDefaultAccount(context.kube, name);
        return undefined;
      },
    },
    ({ watch }) => {
      watch(namespaces, (namespace) => [namespace.metadata.name]);
    },
  );
};

const ensureDefaultAccount = async (kube: KubeClient, namespace: string): Promise<void> => {
  const key = { namespace, name: 'default' };
  if ((await kube.get(serviceAccounts, key)) !== undefined) return;
  const account = { apiVersion: 'v1', kind: 'ServiceAccount', metadata: key };
  await kube.create(serviceAccounts, account).catch((error: unknown) => {
    // It exists by now, or the namespace is being deleted.
    if (!isConflict(error) && !(error instanceof Denied)) throw error;
  });
};

const terminate = async (parts: Terminator, namespace: Namespace): Promise<number | undefined> => {
  const { kube } = parts;
  const { name } = namespace.metadata;
  const finalizers = namespace.spec?.finalizers ?? [];
  if (!finalizers.includes('kubernetes')) return undefined;
  const content = await emptyNamespace(kube, await parts.discovered(), name);
  if (!isEmptied(content)) {
    await report(kube, namespace, content);
    return againMs;
  }
  const kept = finalizers.filter((finalizer) => finalizer !== 'kubernetes');
  const body = { ...namespace, spec: { ...namespace.spec, finalizers: kept } };
  try {
    await kube.raw({ method: 'PUT', path: `/api/v1/namespaces/${name}/finalize`, body });
  } catch (error) {
    if (!isNotFound(error)) throw error;
  }
  return undefined;
};

const report = async (kube: KubeClient, namespace: Namespace, content: NamespaceContent): Promise<void> => {
  const before = namespace.status?.conditions ?? [];
  const conditions = toConditions(content, before, `${new Date().toISOString().slice(0, 19)}Z`);
  if (isSameConditions(conditions, before)) return;
  await kube.mergePatch(
    namespaces,
    { name: namespace.metadata.name },
    { status: { conditions } },
    { subresource: 'status' },
  );
};

/** The served kinds, cached for a while: many namespaces may be deleted at once. */
const createDiscovery = (kube: KubeClient): (() => Promise<Discovered>) => {
  let known: { readonly at: number; readonly answer: Promise<Discovered> } | undefined;
  return () => {
    if (known === undefined || Date.now() - known.at > discoveryMs) known = { at: Date.now(), answer: discover(kube) };
    return known.answer;
  };
};
