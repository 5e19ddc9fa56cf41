// Which cluster this is, for whoever shares a target with it.
import { namespaces } from '#shared/api/foreign/core.ts';
import type { KubeClient } from '#shared/clients/kube/client.ts';
import { Unavailable } from '#shared/runtime/errors.ts';

/** UID of the kube-system namespace: it lives as long as the cluster does. */
export const clusterOf = async (kube: KubeClient): Promise<string> => {
  const system = await kube.get(namespaces, { name: 'kube-system' });
  if (system?.metadata.uid === undefined) throw new Unavailable('namespace kube-system cannot be read');
  return system.metadata.uid;
};
