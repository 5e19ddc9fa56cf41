// A client with administrator rights of a server that a benchmark has started, and the kubeconfig for other processes. Called by benchmarks.
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { KubeConfig } from '@kubernetes/client-node';
import { readCrds } from '#infra/local/manifests.ts';
import { installCrds } from '#local-cluster/install.ts';
import type { KubeClient } from '#shared/clients/kube/client.ts';
import { createKubeClient, loadKubeConfig } from '#shared/clients/kube/create.ts';
import type { Access } from '#test/support/api-server/process.ts';

export interface Connected {
  readonly kube: KubeClient;
  readonly kubeconfig: string;
}

/** Installs the CRDs. */
export const connect = async (dataDir: string, { url, token, caPem }: Access): Promise<Connected> => {
  const config = new KubeConfig();
  const cluster = { name: 'bench', server: url, caData: Buffer.from(caPem).toString('base64'), skipTLSVerify: false };
  config.loadFromClusterAndUser(cluster, { name: 'bench', token });
  const kubeconfig = join(dataDir, 'bench-kubeconfig');
  await writeFile(kubeconfig, config.exportConfig());
  const kube = createKubeClient(loadKubeConfig(kubeconfig));
  await installCrds(kube, await readCrds());
  return { kube, kubeconfig };
};

/** Writers while objects are made. */
const clients = 16;

/** Calls `make` with every index below `count`, several at once. */
export const makeEach = async (count: number, make: (index: number) => Promise<void>): Promise<void> => {
  let next = 0;
  const work = async (): Promise<void> => {
    while (next < count) {
      const index = (next += 1) - 1;
      await make(index);
    }
  };
  await Promise.all(Array.from({ length: clients }, work));
};
