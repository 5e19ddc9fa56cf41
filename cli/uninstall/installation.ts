// What was installed, removed in the order in which nothing waits for what is gone: doors first, then functions, definitions last.
import { setTimeout as sleep } from 'node:timers/promises';
import { mutatingWebhookConfigurations, validatingWebhookConfigurations } from '#shared/api/foreign/admission.ts';
import { crds } from '#shared/api/foreign/crd.ts';
import { namespaces, persistentVolumes } from '#shared/api/foreign/core.ts';
import { systemNamespace } from '#shared/api/names.ts';
import { type KubeObject, type ResourceType, keyOf } from '#shared/api/object.ts';
import { partOfUs } from '#cli/uninstall/objects.ts';
import type { KubeClient } from '#shared/clients/kube/client.ts';

const lookMs = 500;

const typeOf = (apiVersion: string, kind: string, namespaced = false): ResourceType => {
  const [group = '', version = ''] = apiVersion.split('/');
  return { group, version, kind, plural: `${kind.toLowerCase()}s`, namespaced };
};
const rbac = 'rbac.authorization.k8s.io/v1';

/** An outage of what answers them would keep everything else from going. */
export const doors: readonly ResourceType[] = [
  validatingWebhookConfigurations,
  mutatingWebhookConfigurations,
  typeOf('apiregistration.k8s.io/v1', 'APIService'),
];

/** Outside our namespace, which takes along all that is in it. The volume is of the component `nfs-backups`: the export itself stays. */
export const outside: readonly ResourceType[] = [
  persistentVolumes,
  typeOf(rbac, 'RoleBinding', true),
  typeOf(rbac, 'ClusterRoleBinding'),
  typeOf(rbac, 'ClusterRole'),
];

/** Of a kind, all that carries our label; gives how many there were. */
export const removeAll = async (kube: KubeClient, type: ResourceType): Promise<number> => {
  let count = 0;
  const found: KubeObject[] = [];
  for await (const object of kube.listAll(type, { labelSelector: partOfUs })) found.push(object);
  for (const object of found) {
    await kube.delete(type, keyOf(object));
    count += 1;
  }
  return count;
};

export interface UninstallWait {
  readonly kube: KubeClient;
  readonly deadline: number;
  readonly signal: AbortSignal;
}

/** Whether it is over before the time is. */
const until = async ({ deadline, signal }: UninstallWait, isOver: () => Promise<boolean>): Promise<boolean> => {
  for (;;) {
    if (await isOver()) return true;
    if (performance.now() >= deadline || signal.aborted) return false;
    await sleep(lookMs, undefined, { signal }).catch(() => undefined);
  }
};

/** Functions, Broker, sources, secrets. */
export const removeNamespace = async (wait: UninstallWait): Promise<boolean> => {
  await wait.kube.delete(namespaces, { name: systemNamespace });
  return until(wait, async () => (await wait.kube.get(namespaces, { name: systemNamespace })) === undefined);
};

export const removeDefinitions = async (wait: UninstallWait): Promise<boolean> => {
  await removeAll(wait.kube, crds);
  return until(wait, async () => (await wait.kube.list(crds, { labelSelector: partOfUs })).items.length === 0);
};
