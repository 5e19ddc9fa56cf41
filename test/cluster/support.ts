// What flows on the node share: its client, namespaces of their own, pods of its one program, and the bytes of volumes as they are on its disk.
import { execFile } from 'node:child_process';
import { readFile, readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { probeImage } from '#local-cluster/node/files.ts';
import { type NodePaths, network, pathsOf } from '#local-cluster/node/layout.ts';
import {
  type PersistentVolumeClaim,
  type Pod,
  namespaces,
  persistentVolumeClaims,
  persistentVolumes,
  pods,
} from '#shared/api/foreign/core.ts';
import { type HyperCloudImage, hyperCloudImageKind } from '#shared/api/hypercloud/image.ts';
import type { ObjectKey } from '#shared/api/object.ts';
import { createKubeClient, loadKubeConfig } from '#shared/clients/kube/create.ts';
import { messageOf } from '#shared/runtime/errors.ts';
import { until, untilGone, untilStatus } from '#test/support/until.ts';

export const run = promisify(execFile);

/** Of `npm run test:cluster -- --shape <shape>`. */
export const shape = process.env['BULLION_SHAPE'] ?? 'single';

/** Of `npm run test:cluster`. */
export const paths: NodePaths = pathsOf(process.env['BULLION_NODE'] ?? '');
export const kube = createKubeClient(loadKubeConfig(paths.kubeconfig));

export const kubectl = async (...args: readonly string[]): Promise<string> =>
  (await run('kubectl', ['--kubeconfig', paths.kubeconfig, ...args], { maxBuffer: 2 ** 26 })).stdout;

export const createNamespace = async (name: string, labels: Readonly<Record<string, string>> = {}): Promise<void> => {
  await kube.create(namespaces, { apiVersion: 'v1', kind: 'Namespace', metadata: { name, labels } });
  // Pods are rejected before their account is there.
  const account = `/api/v1/namespaces/${name}/serviceaccounts/default`;
  await until(kube, namespaces, { name }, () => true);
  for (;;) {
    const found = await kube.raw({ method: 'GET', path: account }).catch(() => undefined);
    if (found !== undefined) return;
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
};

/** Of an object in a namespace. */
interface Key {
  readonly namespace: string;
  readonly name: string;
}

interface ProbePod {
  readonly key: Key;
  readonly args: readonly string[];
  /** Mounted at `/volume`, or as the device `/dev/volume`. */
  readonly claim?: string;
  readonly isBlock?: boolean;
}

/** The probe as user 107, as Jobs of ours run. */
export const probePod = ({ key, args, claim, isBlock = false }: ProbePod): Pod => ({
  apiVersion: 'v1',
  kind: 'Pod',
  metadata: { ...key, labels: { probe: key.name } },
  spec: {
    restartPolicy: 'Never',
    securityContext: { runAsUser: 107, runAsGroup: 107, fsGroup: 107 },
    containers: [
      {
        name: 'probe',
        image: probeImage,
        imagePullPolicy: 'Never',
        args,
        ...(claim === undefined || isBlock ? {} : { volumeMounts: [{ name: 'volume', mountPath: '/volume' }] }),
        ...(claim === undefined || !isBlock ? {} : { volumeDevices: [{ name: 'volume', devicePath: '/dev/volume' }] }),
      },
    ],
    ...(claim === undefined ? {} : { volumes: [{ name: 'volume', persistentVolumeClaim: { claimName: claim } }] }),
  } as Pod['spec'],
});

/** Output of a pod that ends well. */
export const outputOf = async (pod: Pod, seconds = 120): Promise<string> => {
  await kube.create(pods, pod);
  const key = { namespace: pod.metadata.namespace ?? '', name: pod.metadata.name };
  const ended = await until(
    kube,
    pods,
    key,
    (now) => ['Succeeded', 'Failed'].includes(now?.status?.phase ?? ''),
    seconds,
  );
  const output = await kubectl('logs', '-n', key.namespace, key.name);
  if (ended?.status?.phase !== 'Succeeded') throw new Error(`pod ${key.name} failed: ${output}`);
  await kube.delete(pods, key);
  return output;
};

/** A program of the node dies; it is started again. */
export const killProgram = async (name: string): Promise<void> => {
  const file = (await readdir(paths.pids)).find((entry) => entry.endsWith(`-${name}.pid`)) ?? '';
  const [pid = ''] = (await readFile(join(paths.pids, file), 'utf8')).split('\n');
  process.kill(Number(pid), 'SIGKILL');
};

export const aClaim = (
  key: Key,
  spec: Omit<PersistentVolumeClaim['spec'], 'resources'> & { readonly size: string },
): PersistentVolumeClaim => {
  const { size, ...rest } = spec;
  return {
    apiVersion: 'v1',
    kind: 'PersistentVolumeClaim',
    metadata: key,
    spec: { accessModes: ['ReadWriteOnce'], resources: { requests: { storage: size } }, ...rest },
  };
};

export const untilBound = (key: ObjectKey) =>
  until(kube, persistentVolumeClaims, key, (claim) => claim?.status?.phase === 'Bound', 120);

/** The file with the bytes of a bound claim's volume; for a Filesystem volume, with its file system. */
export const fileOf = async (key: ObjectKey): Promise<string> => {
  const claim = await kube.get(persistentVolumeClaims, key);
  const volume = await kube.get(persistentVolumes, { name: claim?.spec.volumeName ?? 'none' });
  if (volume?.spec.csi === undefined) throw new Error(`claim ${key.name} has no volume`);
  return join(paths.volumes, 'volumes', `${volume.spec.csi.volumeHandle}.img`);
};

/** The kubelet unmounts a volume after its pod is gone. */
const untilUnused = async (file: string): Promise<void> => {
  for (let tries = 0; tries < 120; tries += 1) {
    const { stdout } = await run('losetup', ['--associated', file]);
    if (stdout === '') return;
    await new Promise((resolve) => setTimeout(resolve, 500));
  }
};

/** Uses a file of a Filesystem volume that no pod has mounted. */
export const withMounted = async <T>(key: ObjectKey, use: (folder: string) => Promise<T>): Promise<T> => {
  const folder = join(paths.dataDir, 'inspected');
  await run('mkdir', ['-p', folder]);
  const file = await fileOf(key);
  await untilUnused(file);
  await run('mount', ['-o', 'loop,ro', file, folder]);
  try {
    return await use(folder);
  } finally {
    await run('umount', [folder]);
  }
};

const compare = (raw: string, disk: string): Promise<string> =>
  run('qemu-img', ['compare', '-U', '-f', 'raw', '-F', 'raw', raw, disk]).then(
    () => 'identical',
    (error: unknown) => (error as { readonly stdout?: string }).stdout ?? messageOf(error),
  );

/** How the disk in a claim differs from `raw`, the published one: `identical` if it does not. */
export const diskIn = async (key: Key, raw: string): Promise<string> => {
  const claim = await kube.get(persistentVolumeClaims, key);
  if (claim?.spec.volumeMode === 'Block') return compare(raw, await fileOf(key));
  return withMounted(key, (folder) => compare(raw, join(folder, 'disk.img')));
};

/** Printed, so that figures of documents can be measured. */
export const timed = async <T>(what: string, work: () => Promise<T>): Promise<T> => {
  const started = Date.now();
  const result = await work();
  console.log(`${what}: ${((Date.now() - started) / 1000).toFixed(1)} s`);
  return result;
};

/** URL of the transfer function, from the node. Knative's Services have no address of their own. */
export const transferUrl = async (): Promise<string> => {
  if (shape === 'knative') return `http://${network.node}`;
  const where = ['get', 'service', 'transfer', '-n', 'bullion-system', '-o', 'jsonpath={.spec.clusterIP}'];
  return `http://${(await kubectl(...where)).trim()}`;
};

/** Token of a new account with the role `edit` in the namespace. */
export const editorToken = async (namespace: string, name: string): Promise<string> => {
  await kubectl('create', 'serviceaccount', name, '-n', namespace);
  const role = ['--clusterrole=edit', `--serviceaccount=${namespace}:${name}`];
  await kubectl('create', 'rolebinding', name, '-n', namespace, ...role);
  return (await kubectl('create', 'token', name, '-n', namespace)).trim();
};

export const anImage = (key: Key, http: string, spec: Readonly<Record<string, unknown>> = {}): HyperCloudImage =>
  ({
    apiVersion: 'hypercloud.tmaxanc.com/v1alpha1',
    kind: 'VirtualMachineImage',
    metadata: key,
    spec: { storageClassName: 'local', source: { http }, ...spec },
  }) as HyperCloudImage;

export const untilImage = (key: Key, seconds = 300) =>
  untilStatus(kube, hyperCloudImageKind.type, key, ({ state }) => state === 'Available' || state === 'Error', seconds);

/** Also of what is in them. */
export const deleteNamespaces = async (...names: readonly string[]): Promise<void> => {
  for (const name of names) await kube.delete(namespaces, { name });
  for (const name of names) await untilGone(kube, namespaces, { name }, 240);
};
