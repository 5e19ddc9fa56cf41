// Clients of the API server with the rights of who looks, and none of our own.
import type { KubeClient } from '#shared/clients/kube/client.ts';
import type { VisitorIdentity } from '#shared/console/session.ts';
import { Denied, Unavailable } from '#shared/runtime/errors.ts';

export type ConnectVisitor = (identity: VisitorIdentity) => Promise<KubeClient>;

/** Connections are kept for so many people at once. */
const mostKept = 64;

/** The address and the authority of a kubeconfig, or of the pod, with the token of the visitor in place of its user. */
export const createVisitors = (kubeconfig?: string): ConnectVisitor => {
  const kept = new Map<string, KubeClient>();
  return async (identity) => {
    if (identity === 'owner') throw new Denied('log in with a token');
    const { token } = identity;
    const client = kept.get(token) ?? (await connect(kubeconfig, token));
    // What was used last is kept longest.
    kept.delete(token);
    kept.set(token, client);
    for (const oldest of [...kept.keys()].slice(0, -mostKept)) kept.delete(oldest);
    return client;
  };
};

const connect = async (kubeconfig: string | undefined, token: string): Promise<KubeClient> => {
  const { createKubeClient, loadKubeConfig } = await import('#shared/clients/kube/create.ts');
  const config = loadKubeConfig(kubeconfig);
  const cluster = config.getCurrentCluster();
  const name = 'visitor';
  if (cluster === null) throw new Unavailable('the kubeconfig has no current cluster');
  config.loadFromOptions({
    clusters: [cluster],
    users: [{ name, token }],
    contexts: [{ name, cluster: cluster.name, user: name }],
    currentContext: name,
  });
  return createKubeClient(config);
};
