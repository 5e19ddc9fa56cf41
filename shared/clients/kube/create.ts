// The KubeClient of a pod or a person. Made once at the edge and passed in.
import { KubeConfig } from '@kubernetes/client-node';
import type { KubeClient } from '#shared/clients/kube/client.ts';
import { type MoreHeaders, createTransport } from '#shared/clients/kube/transport.ts';
import { createClientOver } from '#shared/clients/kube/verbs.ts';

/** The configuration a pod or a person has: `KUBECONFIG`, `~/.kube/config`, or the pod's service account. */
export const loadKubeConfig = (path?: string): KubeConfig => {
  const config = new KubeConfig();
  if (path === undefined) config.loadFromDefault();
  else config.loadFromFile(path);
  return config;
};

/** `headers`: sent with every request, beside those that the configuration asks for. */
export const createKubeClient = (config: KubeConfig, headers: MoreHeaders = {}): KubeClient =>
  createClientOver(createTransport(config, headers), config.getCurrentCluster()?.server ?? '');
