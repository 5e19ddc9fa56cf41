// Common parts of tests of manual uploads and downloads: a cluster, a file, an authorized account.
import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { setTimeout as sleep } from 'node:timers/promises';
import { type DataVolume, dataVolumeKind } from '#shared/api/cdi/data-volume.ts';
import { type HarvesterImage, harvesterImageKind } from '#shared/api/harvester/image.ts';
import type { ClusterOptions } from '#infra/local/cluster.ts';
import { type TestCluster, namespace, startTestCluster } from '#test/support/cluster.ts';

const run = promisify(execFile);

export interface ExchangeCluster extends TestCluster {
  readonly kubectl: (...args: readonly string[]) => Promise<string>;
  /** Bearer header of an account with the role edit. */
  readonly editor: { readonly authorization: string };
  /** Of an account with the role, or none. */
  readonly accountOf: (name: string, role?: string) => Promise<{ readonly authorization: string }>;
  readonly imageUrl: (name: string, rest?: string) => string;
  readonly untilImage: (name: string, phase: string) => Promise<HarvesterImage>;
  readonly untilVolume: (name: string, phase: string) => Promise<void>;
}

export const anUploadImage = (name: string, spec: Partial<HarvesterImage['spec']> = {}): HarvesterImage => ({
  apiVersion: 'harvesterhci.io/v1beta1',
  kind: 'VirtualMachineImage',
  metadata: { name, namespace },
  spec: { backend: 'csi', displayName: name, sourceType: 'upload', targetStorageClassName: 'local', ...spec },
});

export const anUploadVolume = (name: string, spec: Partial<DataVolume['spec']> = {}): DataVolume => ({
  apiVersion: 'cdi.kubevirt.io/v1beta1',
  kind: 'DataVolume',
  metadata: { name, namespace },
  spec: {
    source: { upload: {} },
    pvc: { accessModes: ['ReadWriteOnce'], resources: { requests: { storage: '256Mi' } }, storageClassName: 'local' },
    ...spec,
  },
});

const waitMs = 200_000;

/** Usable outside of a test. */
const until = async <T>(read: () => Promise<T>, isSo: (value: T) => boolean): Promise<T> => {
  const deadline = Date.now() + waitMs;
  for (;;) {
    const value = await read();
    if (isSo(value)) return value;
    if (Date.now() > deadline) throw new Error(`still ${JSON.stringify(value, undefined, 1)}`);
    await sleep(100);
  }
};

/** Clients of uploads and downloads must not depend on a tick: there is none. */
export const startExchangeCluster = async (options: Partial<ClusterOptions> = {}): Promise<ExchangeCluster> => {
  const cluster = await startTestCluster({ tickSeconds: 3600, ...options });
  const kubectl = async (...args: readonly string[]): Promise<string> =>
    (await run('kubectl', [...args, '-n', namespace, '--kubeconfig', cluster.kubeconfigPath])).stdout.trim();
  const accountOf = async (name: string, role?: string) => {
    await kubectl('create', 'serviceaccount', name);
    if (role !== undefined)
      await kubectl('create', 'rolebinding', name, `--clusterrole=${role}`, `--serviceaccount=${namespace}:${name}`);
    return { authorization: `Bearer ${await kubectl('create', 'token', name)}` };
  };
  const imageOf = (name: string) => cluster.kube.get(harvesterImageKind.type, { namespace, name });
  return {
    ...cluster,
    kubectl,
    accountOf,
    editor: await accountOf('editor', 'edit'),
    imageUrl: (name, rest = '') =>
      `${cluster.transferUrl}/v1/harvester/harvesterhci.io.virtualmachineimages/${namespace}/${name}${rest}`,
    untilImage: async (name, phase) =>
      (await until(
        () => imageOf(name),
        (image) => image?.status?.phase === phase,
      ))!,
    untilVolume: async (name, phase) => {
      const read = () => cluster.kube.get(dataVolumeKind.type, { namespace, name });
      await until(read, (volume) => volume?.status?.phase === phase);
    },
  };
};
