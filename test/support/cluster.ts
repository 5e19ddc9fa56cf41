// A local cluster for a test, and queries of flow tests.
import { execFile, spawn } from 'node:child_process';
import { mkdtemp, readdir, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { setTimeout as sleep } from 'node:timers/promises';
import { promisify } from 'node:util';
import { jobs, persistentVolumeClaims, persistentVolumes, pods } from '#shared/api/foreign/core.ts';
import { volumeSnapshotContents, volumeSnapshots } from '#shared/api/foreign/snapshot.ts';
import { type HyperCloudImage, hyperCloudImageKind } from '#shared/api/hypercloud/image.ts';
import type { ResourceType } from '#shared/api/object.ts';
import type { KubeClient } from '#shared/clients/kube/client.ts';
import { createKubeClient, loadKubeConfig } from '#shared/clients/kube/create.ts';
import { type Cluster, type ClusterOptions, startCluster } from '#infra/local/cluster.ts';
import { recordCalls } from '#test/roles/calls.ts';
import { flowApiServer } from '#test/support/api-server-kind.ts';
import { untilGone, untilStatus } from '#test/support/until.ts';

export const run = promisify(execFile);
export const images = hyperCloudImageKind.type;
export type ImageStatus = NonNullable<HyperCloudImage['status']>;
export const namespace = 'default';

export interface TestCluster extends Cluster {
  readonly dataDir: string;
  /** Stops it and starts it again on the same data, with the same addresses. */
  readonly restart: () => Promise<void>;
  /** Also removes the data. */
  readonly close: () => Promise<void>;
}

/** In this process, with short back-off. */
export const startTestCluster = async (options: Partial<ClusterOptions> = {}): Promise<TestCluster> => {
  const dataDir = await mkdtemp(join(tmpdir(), 'bullion-flow-'));
  const start = () => startCluster(all);
  const all: ClusterOptions = {
    dataDir,
    apiServer: flowApiServer,
    environment: process.env,
    tickSeconds: 3,
    backOffFactor: 0.01,
    audit: recordCalls(process.env['BULLION_CALLS']),
    ...options,
  };
  let running = await start();
  return {
    ...running,
    // Over the network, like users: it survives a restart.
    kube: createKubeClient(loadKubeConfig(running.kubeconfigPath)),
    dataDir,
    restart: async () => {
      await running.stop();
      running = await start();
    },
    close: async () => {
      await running.stop();
      await rm(dataDir, { recursive: true, force: true });
    },
  };
};

export const anImage = (name: string, spec: HyperCloudImage['spec']): HyperCloudImage => ({
  apiVersion: 'hypercloud.tmaxanc.com/v1alpha1',
  kind: 'VirtualMachineImage',
  metadata: { name, namespace },
  spec: { storageClassName: 'local', ...spec },
});

/** All observed statuses up to the first one that matches. Fails with the last one after `seconds`. */
export const followUntil = async (
  kube: KubeClient,
  name: string,
  isSo: (status: ImageStatus) => boolean,
  seconds: number = 150,
): Promise<readonly ImageStatus[]> => {
  const observed: ImageStatus[] = [];
  const observe = (status: ImageStatus): boolean => {
    if (JSON.stringify(status) !== JSON.stringify(observed.at(-1))) observed.push(status);
    return isSo(status);
  };
  await untilStatus(kube, images, { namespace, name }, observe, seconds);
  return observed;
};

export const isOver = ({ state }: ImageStatus): boolean => state === 'Available' || state === 'Error';
export const readyOf = (status: ImageStatus | undefined) => status?.conditions?.find(({ type }) => type === 'Ready');

/** Imports until the end; returns the last status. */
export const settle = async (kube: KubeClient, image: HyperCloudImage, seconds?: number): Promise<ImageStatus> => {
  await kube.create(images, image);
  const observed = await followUntil(kube, image.metadata.name, isOver, seconds);
  return observed.at(-1)!;
};

export const deleteImage = async (kube: KubeClient, name: string, seconds = 120): Promise<void> => {
  await kube.delete(images, { namespace, name });
  await untilGone(kube, images, { namespace, name }, seconds);
};

const childKinds: readonly ResourceType[] = [
  jobs,
  pods,
  persistentVolumeClaims,
  persistentVolumes,
  volumeSnapshots,
  volumeSnapshotContents,
];

/** Remaining objects of images in the API and on disk, as `Kind/name` and paths. Files get a moment to disappear. */
export const leftOvers = async (kube: KubeClient, dataDir: string, seconds = 90): Promise<readonly string[]> => {
  const deadline = Date.now() + seconds * 1000;
  for (;;) {
    const left: string[] = [];
    for (const type of childKinds) {
      for await (const { metadata } of kube.listAll(type)) left.push(`${type.kind}/${metadata.name}`);
    }
    for (const folder of ['storage/volumes', 'storage/snapshots', 'storage/work', 'pods']) {
      for (const name of await readdir(join(dataDir, folder))) left.push(`${folder}/${name}`);
    }
    if (left.length === 0 || Date.now() > deadline) return left;
    await sleep(100);
  }
};

/** `npm start` as a separate process, which a test may kill. */
export interface ClusterProcess {
  readonly kube: KubeClient;
  readonly kubeconfigPath: string;
  readonly kill: (signal: 'SIGKILL' | 'SIGTERM') => Promise<void>;
  /** Its standard output. */
  readonly output: readonly string[];
}

export const startClusterProcess = async (dataDir: string, args: readonly string[] = []): Promise<ClusterProcess> => {
  const options = ['--data-dir', dataDir, '--tick', '1', '--apiserver', flowApiServer, ...args];
  const child = spawn(process.execPath, ['infra/local/main.ts', ...options], { stdio: ['ignore', 'pipe', 'pipe'] });
  const ended = new Promise<void>((resolve) => child.once('exit', () => resolve()));
  const output: string[] = [];
  const errors: string[] = [];
  child.stderr.on('data', (chunk: Buffer) => errors.push(chunk.toString()));
  const ready = new Promise<string>((resolve, reject) => {
    createInterface({ input: child.stdout }).on('line', (line) => {
      output.push(line);
      if (line.startsWith('ready kubeconfig=')) resolve(line.slice('ready kubeconfig='.length));
    });
    void ended.then(() => reject(new Error(`the cluster ended: ${errors.join('')}`)));
  });
  const kubeconfigPath = await ready;
  return {
    kube: createKubeClient(loadKubeConfig(kubeconfigPath)),
    kubeconfigPath,
    output,
    kill: async (signal) => {
      child.kill(signal);
      await ended;
    },
  };
};
