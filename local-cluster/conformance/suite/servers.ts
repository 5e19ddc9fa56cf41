// Starts the servers of the suite, each in a temporary folder. Called by main.ts and the vitest files.
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, dirname } from 'node:path';
import { createApiServer } from '#local-cluster/api-server/server.ts';
import { startGarbageCollector } from '#local-cluster/controllers/garbage-collector/collector.ts';
import { startNamespaceController } from '#local-cluster/controllers/namespaces.ts';
import { createKubeClient, loadKubeConfig } from '#shared/clients/kube/create.ts';
import { findAssets } from '#local-cluster/envtest/assets.ts';
import { startRealApiServer } from '#local-cluster/real-api-server/server.ts';
import type { ConformanceServer } from '#local-cluster/conformance/suite/case.ts';
import { existsSync } from 'node:fs';
import { type Daemon, startDaemon } from '#local-cluster/real-api-server/process.ts';

export type ServerKind = ConformanceServer['kind'];

/** Whether this machine has everything that the server needs. */
export const isAvailable = (kind: ServerKind): boolean => kind === 'embedded' || findAssets(process.env) !== undefined;

export const startServer = async (kind: ServerKind): Promise<ConformanceServer> => {
  const dataDir = await mkdtemp(join(tmpdir(), `conformance-${kind}-`));
  const remove = (): Promise<void> => rm(dataDir, { recursive: true, force: true });
  try {
    const server = await (kind === 'real' ? startReal(dataDir) : startEmbedded(dataDir));
    const close = async (): Promise<void> => {
      await server.close();
      await remove();
    };
    return { ...server, close };
  } catch (error) {
    await remove();
    throw error;
  }
};

const startReal = async (dataDir: string): Promise<ConformanceServer> => {
  const assetsDir = findAssets(process.env);
  if (assetsDir === undefined) throw new Error('no real API server here: run `npm run envtest` first');
  // With the cache of past lists, history remains available for a minute after a compaction.
  const extraFlags = ['--feature-gates=ListFromCacheSnapshot=false'];
  const server = await startRealApiServer({ assetsDir, dataDir, durable: false, extraFlags });
  const stopControllers = hasControllerManager(assetsDir)
    ? (await startControllerManager(assetsDir, server.kubeconfigPath)).stop
    : await startLocalControllers(server.kubeconfigPath);
  const close = async (): Promise<void> => {
    await stopControllers();
    await server.close();
  };
  return { ...server, kind: 'real', close };
};

const startEmbedded = async (dataDir: string): Promise<ConformanceServer> => {
  const server = await createApiServer({ dataDir });
  const stopControllers = await startLocalControllers(server.kubeconfigPath);
  const close = async (): Promise<void> => {
    await stopControllers();
    await server.close();
  };
  return { ...server, kind: 'embedded', close };
};

/** The controllers of the local cluster, in place of those of a real control plane. */
const startLocalControllers = async (kubeconfigPath: string): Promise<() => Promise<void>> => {
  const kube = createKubeClient(loadKubeConfig(kubeconfigPath));
  const context = { kube, report: () => undefined };
  const controllers = [startNamespaceController(context), startGarbageCollector(context)];
  await Promise.all(controllers.map(({ ready }) => ready));
  return async () => {
    await Promise.all(controllers.map((controller) => controller.stop()));
  };
};

/** The controllers of the real control plane that cases need: garbage collection and namespace deletion. */
const name = 'kube-controller-manager';

/** Assets built elsewhere may lack it. */
const hasControllerManager = (assetsDir: string): boolean => existsSync(join(assetsDir, name));

const startControllerManager = (assetsDir: string, kubeconfigPath: string): Promise<Daemon> => {
  const folder = dirname(kubeconfigPath);
  return startDaemon({
    name,
    command: join(assetsDir, name),
    args: [
      `--kubeconfig=${kubeconfigPath}`,
      '--controllers=garbage-collector-controller,namespace-controller',
      '--leader-elect=false',
      '--secure-port=0',
      '--kube-api-qps=200',
      '--kube-api-burst=400',
    ],
    logFile: join(folder, 'logs', 'kube-controller-manager.log'),
    pidFile: join(folder, 'kube-controller-manager.pid'),
  });
};
