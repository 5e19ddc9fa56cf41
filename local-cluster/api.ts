// The API server of the local cluster: embedded, or a real one if its binaries are available. Called by cluster.ts.
import { join } from 'node:path';
import { findAssets } from '#local-cluster/envtest/assets.ts';
import type { Audit } from '#local-cluster/api-server/handlers/call.ts';
import { createApiServer } from '#local-cluster/api-server/server.ts';
import { startRealApiServer, stopLeftovers } from '#local-cluster/real-api-server/server.ts';
import type { KubeClient } from '#shared/clients/kube/client.ts';
import { createKubeClient, loadKubeConfig } from '#shared/clients/kube/create.ts';
import { InvalidInput } from '#shared/runtime/errors.ts';

export const apiServerKinds = ['embedded', 'real'] as const;
export type ApiServerKind = (typeof apiServerKinds)[number];

export interface ApiServerHandle {
  /** `https://127.0.0.1:<port>` */
  readonly url: string;
  /** Of the administrator. */
  readonly kubeconfigPath: string;
  /** A direct client for the account of a kubeconfig. */
  readonly connect: (kubeconfigPath: string) => Promise<KubeClient>;
  readonly close: () => Promise<void>;
}

export interface ApiServerOptions {
  readonly dataDir: string;
  readonly port: number;
  /** Log file of a container, for `kubectl logs`; a real server would ask a kubelet, which does not exist here. */
  readonly containerLog?: ((podUid: string, container: string) => string) | undefined;
  /** Called for the permissions that each user has used; only by the embedded server. */
  readonly audit?: Audit | undefined;
  /** Contains the location of a real server's binaries. */
  readonly environment: Readonly<Record<string, string | undefined>>;
}

const folderOf = (dataDir: string): string => join(dataDir, 'api-server');

/** Stops servers that a killed cluster left running on the directory, of either kind. */
export const stopLeftoverApiServer = (dataDir: string): Promise<void> => stopLeftovers(folderOf(dataDir));

/** Resolves when it answers. Throws InvalidInput if there are no binaries for a real one. */
export const startApiServer = async (kind: ApiServerKind, options: ApiServerOptions): Promise<ApiServerHandle> => {
  const { port, environment, containerLog, audit } = options;
  const dataDir = folderOf(options.dataDir);
  if (kind === 'embedded') return createApiServer({ dataDir, port, containerLog, audit });
  const assetsDir = findAssets(environment);
  if (assetsDir === undefined) {
    throw new InvalidInput(
      'no kube-apiserver here: run `npm run envtest`, set KUBEBUILDER_ASSETS to a folder with it and etcd, or use --apiserver=embedded',
    );
  }
  const server = await startRealApiServer({ assetsDir, port, dataDir });
  return { ...server, connect: (path) => Promise.resolve(createKubeClient(loadKubeConfig(path))) };
};
