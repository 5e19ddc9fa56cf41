// Empties a namespace that is being deleted and removes its finalizer; creates the default service account of a new one.
import { type Namespace, namespaces } from '#shared/api/foreign/core.ts';
import type { ResourceType } from '#shared/api/object.ts';
import type { KubeClient } from '#shared/clients/kube/client.ts';
import { Denied, isConflict, isNotFound } from '#shared/runtime/errors.ts';
import { type Controller, type ControllerContext, startController } from '#local-cluster/controllers/controller.ts';
import { type Discovered, discover } from '#local-cluster/controllers/discovery.ts';
import {
  type NamespaceContent,
  isEmptied,
  isSameConditions,
  toConditions,
} from '#local-cluster/controllers/namespace-conditions.ts';
import { emptyNamespace } from '#local-cluster/controllers/namespace-content.ts';

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
