// An API server with the local cluster's controllers, for tests of the controllers alone: embedded, and real if available, to compare with the
// original.
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { KubeObject } from '#shared/api/object.ts';
import type { KubeClient } from '#shared/clients/kube/client.ts';
import { createKubeClient, loadKubeConfig } from '#shared/clients/kube/create.ts';
import { snapshotCrds } from '#local-cluster/controllers/snapshots/crds.ts';
import { type Controllers, startControllers } from '#local-cluster/controllers/start.ts';
import { ensureClasses } from '#local-cluster/controllers/volumes/classes.ts';
import { type ApiServerKind, startApiServer } from '#local-cluster/api.ts';
import { installCrds } from '#local-cluster/install.ts';

export interface ControlPlane {
  readonly kube: KubeClient;
  readonly dataDir: string;
  readonly kubeconfigPath: string;
  readonly controllers: () => Controllers;
  /** Errors reported by the controllers. */
  readonly reports: readonly string[];
  /** Stops the controllers in the given way and starts new ones on the same data. */
  readonly restart: (how: 'drain' | 'abandon') => Promise<void>;
  readonly close: () => Promise<void>;
}

export const startControlPlane = async (kind: ApiServerKind): Promise<ControlPlane> => {
  const dataDir = await mkdtemp(join(tmpdir(), 'bullion-controllers-'));
  const server = await startApiServer(kind, { dataDir, port: 0, environment: process.env });
  const kube = createKubeClient(loadKubeConfig(server.kubeconfigPath));
  await installCrds(kube, snapshotCrds);
  await ensureClasses(kube);
  const reports: string[] = [];
  const start = (): Promise<Controllers> =>
    startControllers({
      kube,
      dataDir,
      report: (message, fields) => reports.push(`${message} ${JSON.stringify(fields)}`),
      backOffFactor: 0.02,
      host: {
        images: { 'test/sh': ['/bin/sh'] },
        nodePath: process.execPath,
        workingDir: process.cwd(),
        env: { PATH: process.env['PATH'] ?? '/usr/bin:/bin' },
      },
    });
  let controllers = await start();
  return {
    kube,
    dataDir,
    kubeconfigPath: server.kubeconfigPath,
    controllers: () => controllers,
    reports,
    restart: async (how) => {
      await controllers.stop(how);
      controllers = await start();
    },
    close: async () => {
      await controllers.stop();
      await server.close();
      await rm(dataDir, { recursive: true, force: true });
    },
  };
};

export const gone = (object: KubeObject | undefined): boolean => object === undefined;
