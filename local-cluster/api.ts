// The API server of the local cluster: embedded, or a real one where its binaries are at hand. Called by cluster.ts.
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
  /** Grants everything. */
  readonly kubeconfigPath: string;
  /** A client under the account of a kubeconfig, by the shortest way there is. */
  readonly connect: (kubeconfigPath: string) => Promise<KubeClient>;
  readonly close: () => Promise<void>;
}

export interface ApiServerOptions {
  readonly dataDir: string;
  readonly port: number;
  /** File of a container's output, for `kubectl logs`; a real server would ask a kubelet, which there is none of. */
  readonly containerLog?: ((podUid: string, container: string) => string) | undefined;
  /** Told of what each user was let do; the embedded server alone does so. */
  readonly audit?: Audit | undefined;
  /** Where a real server's binaries are looked for. */
  readonly environment: Readonly<Record<string, string | undefined>>;
}

const folderOf = (dataDir: string): string => join(dataDir, 'api-server');

/** Ends the servers that a cluster which was killed has left running on the directory, of whichever kind the next one is. */
export const stopLeftoverApiServer = (dataDir: string): Promise<void> => stopLeftovers(folderOf(dataDir));

/** Resolves when it answers. Throws InvalidInput when there are no binaries for a real one. */
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
