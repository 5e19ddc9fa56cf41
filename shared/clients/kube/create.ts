// The KubeClient of a pod or a person. Made once at the edge and passed in.
import { KubeConfig } from '@kubernetes/client-node';
import type { KubeClient } from '#shared/clients/kube/client.ts';
import { createTransport } from '#shared/clients/kube/transport.ts';
import { createClientOver } from '#shared/clients/kube/verbs.ts';

/** The configuration a pod or a person has: `KUBECONFIG`, `~/.kube/config`, or the pod's service account. */
export const loadKubeConfig = (path?: string): KubeConfig => {
  const config = new KubeConfig();
  if (path === undefined) config.loadFromDefault();
  else config.loadFromFile(path);
  return config;
};

export const createKubeClient = (config: KubeConfig): KubeClient =>
  createClientOver(createTransport(config), config.getCurrentCluster()?.server ?? '');
