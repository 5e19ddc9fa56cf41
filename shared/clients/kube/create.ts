// The KubeClient of a pod or a user. Created once by the entry point and passed in.
import { KubeConfig } from '@kubernetes/client-node';
import type { KubeClient } from '#shared/clients/kube/client.ts';
import { type MoreHeaders, createTransport } from '#shared/clients/kube/transport.ts';
import { createClientOver } from '#shared/clients/kube/verbs.ts';

/** The configuration of a pod or a user: `KUBECONFIG`, `~/.kube/config`, or the service account of the pod. */
export const loadKubeConfig = (path?: string): KubeConfig => {
  const config = new KubeConfig();
  if (path === undefined) config.loadFromDefault();
  else config.loadFromFile(path);
  return config;
};

/** `headers`: sent with every request, in addition to those of the configuration. */
export const createKubeClient = (config: KubeConfig, headers: MoreHeaders = {}): KubeClient =>
  createClientOver(createTransport(config, headers), config.getCurrentCluster()?.server ?? '');
