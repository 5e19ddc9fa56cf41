// The client certificate authority of the cluster's API server as an aggregator, as the API server publishes it.
import { z } from 'zod';
import { configMaps } from '#shared/api/foreign/core.ts';
import type { KubeClient } from '#shared/clients/kube/client.ts';
import { NotFound } from '#shared/runtime/errors.ts';
import { peerNameOf } from '#shared/runtime/serve.ts';

const key = { namespace: 'kube-system', name: 'extension-apiserver-authentication' } as const;

export interface FrontProxy {
  /** PEM of its CA. */
  readonly ca: string;
  readonly isFrontProxy: (request: Request) => boolean;
}

const Names = z.array(z.string());

/** Read once, as by every extension server: a cluster that rotates its CA restarts them. Throws NotFound if there is none. */
export const readFrontProxy = async (kube: KubeClient): Promise<FrontProxy> => {
  const data = (await kube.get(configMaps, key))?.data ?? {};
  const ca = data['requestheader-client-ca-file'];
  if (ca === undefined) {
    throw new NotFound(
      `ConfigMap ${key.name} in ${key.namespace} has no requestheader-client-ca-file: the API server aggregates no APIs; start it with --requestheader-client-ca-file`,
    );
  }
  const allowed = Names.parse(JSON.parse(data['requestheader-allowed-names'] ?? '[]'));
  return {
    ca,
    isFrontProxy: (request) => {
      const name = peerNameOf(request);
      return name !== undefined && (allowed.length === 0 || allowed.includes(name));
    },
  };
};
