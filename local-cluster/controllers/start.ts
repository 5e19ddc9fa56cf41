// All controllers of the local cluster. Called by cluster.ts and by tests, around the embedded or a real API server.
import { join } from 'node:path';
import type { KubeClient } from '#shared/clients/kube/client.ts';
import { startClaimProtection } from '#local-cluster/controllers/finalizers.ts';
import { startClusterRoleController } from '#local-cluster/controllers/cluster-roles.ts';
import type { Controller, ControllerContext, Report } from '#local-cluster/controllers/controller.ts';
import { startGarbageCollector } from '#local-cluster/controllers/garbage-collector/collector.ts';
import { startJobController } from '#local-cluster/controllers/jobs/jobs.ts';
import { type Host, pathsOf } from '#local-cluster/controllers/jobs/launch.ts';
import { startPodController } from '#local-cluster/controllers/jobs/pods.ts';
import { startNamespaceController } from '#local-cluster/controllers/namespaces.ts';
import { startContentController, startSnapshotController } from '#local-cluster/controllers/snapshots/controller.ts';
import { type Unpack, startClaimController } from '#local-cluster/controllers/volumes/claims.ts';
import { type VolumeDirectory, openVolumeDirectory } from '#local-cluster/controllers/volumes/directory.ts';
import { startReclaimController, sweepFiles } from '#local-cluster/controllers/volumes/reclaim.ts';

export interface ControllersOptions {
  readonly kube: KubeClient;
  readonly report: Report;
  /** Directory of volumes, snapshots and the state of pods. */
  readonly dataDir: string;
  readonly host: Host;
  /** Factor for the delays between attempts of a Job; default 1. */
  readonly backOffFactor?: number;
  readonly unpack?: (directory: VolumeDirectory) => Unpack;
}

export interface Controllers {
  readonly directory: VolumeDirectory;
  /** Path of a container's log. */
  readonly logFile: (podUid: string, container: string) => string;
  /** Stops everything. Child processes are ended and their Jobs resume at the next start; `abandon` leaves them running instead. */
  readonly stop: (how?: 'drain' | 'abandon') => Promise<void>;
}

const nothingToUnpack: Unpack = () => Promise.reject(new Error('this cluster has no backing images'));

/** Milliseconds that child processes get to end at a shutdown. */
const drainMs = 5_000;
export const nodeName = 'local';

const podsDirOf = (dataDir: string): string => join(dataDir, 'pods');

/** Path of the output of a pod's container. */
export const logFileOf = (dataDir: string, podUid: string, container: string): string =>
  pathsOf(join(podsDirOf(dataDir), podUid)).log(container);

/** Resolves when all of them are running. The snapshot CRDs and the storage classes must exist. */
export const startControllers = async (options: ControllersOptions): Promise<Controllers> => {
  const { kube, report, dataDir } = options;
  const context: ControllerContext = { kube, report };
  const directory = await openVolumeDirectory(join(dataDir, 'storage'));
  await sweepFiles(kube, directory);
  const podsDir = podsDirOf(dataDir);

  const podRunner = await startPodController({ ...context, directory, nodeName, podsDir, host: options.host });
  const jobRunner = startJobController({ ...context, nodeName, backOffFactor: options.backOffFactor });
  const others: readonly Controller[] = [
    startNamespaceController(context),
    startClaimProtection(context),
    startClaimController({ ...context, directory, unpack: options.unpack?.(directory) ?? nothingToUnpack }),
    startReclaimController({ ...context, directory }),
    startSnapshotController({ ...context, directory }),
    startContentController({ ...context, directory }),
    startGarbageCollector(context),
    startClusterRoleController(context),
  ];
  await Promise.all([podRunner, jobRunner, ...others].map(({ ready }) => ready));
  return {
    directory,
    logFile: (podUid, container) => logFileOf(dataDir, podUid, container),
    stop: async (how = 'drain') => {
      // Jobs first, or each pod that is ended here would be replaced at once.
      await jobRunner.stop();
      await (how === 'drain' ? podRunner.drain(drainMs) : podRunner.stop());
      await Promise.all(others.map((controller) => controller.stop()));
    },
  };
};
