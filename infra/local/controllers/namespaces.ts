// Empties a namespace that is being deleted and lets it go; gives a new one its default service account.
import { type Namespace, namespaces } from '#shared/api/foreign/core.ts';
import { type KubeObject, type ResourceType, keyOf } from '#shared/api/object.ts';
import type { KubeClient } from '#shared/clients/kube/client.ts';
import { Denied, isConflict, isNotFound } from '#shared/runtime/errors.ts';
import { type Controller, type ControllerContext, startController } from '#infra/local/controllers/controller.ts';
import { discover } from '#infra/local/controllers/discovery.ts';

const serviceAccounts: ResourceType = {
  group: '',
  version: 'v1',
  kind: 'ServiceAccount',
  plural: 'serviceaccounts',
  namespaced: true,
};

/** Milliseconds between looks at a namespace that is not empty yet. */
const againMs = 500;

export const startNamespaceController = (context: ControllerContext): Controller =>
  startController(
    {
      ...context,
      name: 'namespaces',
      reconcile: async (name) => {
        const namespace = await context.kube.get(namespaces, { name });
        if (namespace === undefined) return undefined;
        if (namespace.metadata.deletionTimestamp !== undefined) return terminate(context.kube, namespace);
        await ensureDefaultAccount(context.kube, name);
        return undefined;
      },
    },
    ({ watch }) => {
      watch(namespaces, (namespace) => [namespace.metadata.name]);
    },
  );

const ensureDefaultAccount = async (kube: KubeClient, namespace: string): Promise<void> => {
  const key = { namespace, name: 'default' };
  if ((await kube.get(serviceAccounts, key)) !== undefined) return;
  const account = { apiVersion: 'v1', kind: 'ServiceAccount', metadata: key };
  await kube.create(serviceAccounts, account).catch((error: unknown) => {
    // There by now, or the namespace is about to go.
    if (!isConflict(error) && !(error instanceof Denied)) throw error;
  });
};

const terminate = async (kube: KubeClient, namespace: Namespace): Promise<number | undefined> => {
  const { name } = namespace.metadata;
  const finalizers = namespace.spec?.finalizers ?? [];
  if (!finalizers.includes('kubernetes')) return undefined;
  const { types, failed } = await discover(kube);
  let left = 0;
  for (const type of types) if (type.namespaced) left += await empty(kube, type, name);
  // A group that does not answer may still hold something in this namespace.
  if (left > 0 || failed.length > 0) return againMs;
  const kept = finalizers.filter((finalizer) => finalizer !== 'kubernetes');
  const body = { ...namespace, spec: { ...namespace.spec, finalizers: kept } };
  try {
    await kube.raw({ method: 'PUT', path: `/api/v1/namespaces/${name}/finalize`, body });
  } catch (error) {
    if (!isNotFound(error)) throw error;
  }
  return undefined;
};

/** Asks everything of a kind to go; returns how many there still were. */
const empty = async (kube: KubeClient, type: ResourceType, namespace: string): Promise<number> => {
  let seen = 0;
  try {
    for await (const object of kube.listAll(type, { namespace })) {
      seen += 1;
      if (!isLeaving(object)) await kube.delete(type, keyOf(object), { propagation: 'Background' });
    }
  } catch (error) {
    // The kind itself is gone.
    if (!isNotFound(error)) throw error;
  }
  return seen;
};

const isLeaving = (object: KubeObject): boolean => object.metadata.deletionTimestamp !== undefined;
