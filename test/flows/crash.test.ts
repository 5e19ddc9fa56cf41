import { mkdtemp, readFile, readdir, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { writeBootDisk } from '#infra/local/demo/boot-disk.ts';
import { type FileServer, startFileServer } from '#infra/local/demo/file-server.ts';
import { proveIdentical } from '#infra/local/demo/prove.ts';
import {
  type Job,
  type PersistentVolumeClaim,
  type Pod,
  jobs,
  persistentVolumeClaims,
  pods,
} from '#shared/api/foreign/core.ts';
import { type VolumeSnapshot, volumeSnapshots } from '#shared/api/foreign/snapshot.ts';
import { annotations } from '#shared/api/names.ts';
import type { KubeObject, ResourceType } from '#shared/api/object.ts';
import type { HyperCloudImage } from '#shared/api/hypercloud/image.ts';
import {
  type ClusterProcess,
  anImage,
  deleteImage,
  followUntil,
  images,
  isOver,
  leftOvers,
  namespace,
  run,
  startClusterProcess,
} from '#test/support/cluster.ts';
import { drawn, seed } from '#test/support/random.ts';

const mib = 2 ** 20;

/** A moment in an import, identified by the first change of a kind that matches. */
interface Moment {
  readonly when: string;
  readonly type: ResourceType;
  readonly isSo: (object: never) => boolean;
}
const moment = <T extends KubeObject>(when: string, type: ResourceType<T>, isSo: (object: T) => boolean): Moment => ({
  when,
  type: type,
  isSo,
});
const jobOf = (mode: string) => (job: Job | Pod) => job.metadata.name.startsWith(`${mode}-`);
const isRunning = ({ status }: Pod) => status?.phase === 'Running';

const moments: readonly Moment[] = [
  moment('the image is created', images, () => true),
  moment('the inspecting Job is there', jobs, jobOf('inspect')),
  moment('the volume is claimed', persistentVolumeClaims, () => true),
  moment(
    'the volume is bound',
    persistentVolumeClaims,
    ({ status }: PersistentVolumeClaim) => status?.phase === 'Bound',
  ),
  moment('the importing Job is there', jobs, jobOf('import')),
  moment('the importing pod runs', pods, (pod: Pod) => jobOf('import')(pod) && isRunning(pod)),
  moment('bytes have arrived', images, ({ status }: HyperCloudImage) => (status?.transfer?.receivedBytes ?? 0) > 0),
  moment('the worker is done', pods, (pod: Pod) => jobOf('import')(pod) && pod.status?.phase === 'Succeeded'),
  moment(
    'the volume is marked as filled',
    persistentVolumeClaims,
    ({ metadata }) => metadata.annotations?.[annotations.populated] !== undefined,
  ),
  moment('the snapshot is asked for', volumeSnapshots, () => true),
  moment('the snapshot is ready', volumeSnapshots, ({ status }: VolumeSnapshot) => status?.readyToUse === true),
  moment('the image is available', images, ({ status }: HyperCloudImage) => status?.state === 'Available'),
];

/** A different sixth of them in each run, and all with `BULLION_FUZZ=6`: the simulation kills at every call (test/faults/crash.test.ts). */
const killed = drawn(moments, 1 / 6);

/** Command lines of processes that use the directory. */
const processesOf = async (dataDir: string): Promise<readonly string[]> => {
  const found: string[] = [];
  for (const name of await readdir('/proc').catch(() => [])) {
    const line = await readFile(`/proc/${name}/cmdline`, 'utf8').catch(() => '');
    if (/^\d+$/.test(name) && line.includes(dataDir)) found.push(line.replaceAll('\0', ' '));
  }
  return found;
};

describe('a cluster that is killed and restarted', { timeout: 500_000 }, () => {
  let dir: string;
  let dataDir: string;
  let raw: string;
  let http: string;
  let slowHttp: string;
  let server: FileServer;
  let slowServer: FileServer;
  let cluster: ClusterProcess;
  beforeAll(async () => {
    dir = await mkdtemp(join(tmpdir(), 'bullion-crash-'));
    dataDir = join(dir, 'cluster');
    raw = join(dir, 'disk.raw');
    await writeBootDisk(raw, { bytes: 32 * mib, dataBytes: 8 * mib });
    await run('qemu-img', ['convert', '-f', 'raw', '-O', 'qcow2', raw, join(dir, 'disk.qcow2')]);
    server = await startFileServer({ bytesPerSecond: 12 * mib });
    http = server.offer('disk.qcow2', join(dir, 'disk.qcow2'));
    slowServer = await startFileServer({ bytesPerSecond: 1 * mib });
    slowHttp = slowServer.offer('disk.qcow2', join(dir, 'disk.qcow2'));
    cluster = await startClusterProcess(dataDir);
  });
  afterAll(async () => {
    await cluster.kill('SIGTERM');
    await server.close();
    await slowServer.close();
    await rm(dir, { recursive: true, force: true });
  });

  /** Resolves at the first matching change. Watches from before it is called. */
  const reach = async ({ type, isSo }: Moment): Promise<void> => {
    const stop = AbortSignal.timeout(150_000);
    for await (const { type: change, object } of cluster.kube.watch(type, { signal: stop })) {
      if (change !== 'BOOKMARK' && isSo(object as never)) return;
    }
    throw new Error('the moment never came');
  };

  const restart = async (signal: 'SIGKILL' | 'SIGTERM'): Promise<void> => {
    await cluster.kill(signal);
    cluster = await startClusterProcess(dataDir);
  };

  /** The result of the import: one object of each kind, and the same bytes. */
  const outcomeOf = async (name: string) => {
    const { kube } = cluster;
    const status = (await followUntil(kube, name, isOver)).at(-1);
    const { items } = await kube.list(persistentVolumeClaims);
    const disk = join(dataDir, 'storage/volumes', items[0]?.spec.volumeName ?? '', 'block');
    await proveIdentical(disk, { file: raw, format: 'raw', compression: 'none' }, dir);
    return {
      state: status?.state,
      failed: status?.failed,
      claims: items.map(({ metadata }) => metadata.name),
      snapshots: (await kube.list(volumeSnapshots)).items.map(({ metadata }) => metadata.name),
    };
  };
  const imported = (name: string) => ({
    state: 'Available',
    failed: 0,
    claims: [`${name}-image-pvc`],
    snapshots: [`${name}-image-snapshot`],
  });

  /** Objects, files and processes that outlive the image. */
  const remainsOf = async (name: string): Promise<readonly string[]> => {
    await deleteImage(cluster.kube, name);
    return [...(await leftOvers(cluster.kube, dataDir)), ...(await processesOf(join(dataDir, 'pods')))];
  };

  it.each(killed.map((one, index) => [one.when, one, index] as const))(
    `reaches the same state after SIGKILL when %s (seed ${seed})`,
    async (_, at, index) => {
      const name = `killed-${index}`;
      const reached = reach(at);
      // Slow enough that progress is reported before all bytes have arrived.
      const from = at.when === 'bytes have arrived' ? slowHttp : http;
      await cluster.kube.create(images, anImage(name, { source: { http: from } }));
      await reached;
      await restart('SIGKILL');
      expect(await outcomeOf(name)).toEqual(imported(name));
      expect(await remainsOf(name)).toEqual([]);
    },
  );

  it('continues a deletion after SIGKILL', async () => {
    const name = 'leaving';
    await cluster.kube.create(images, anImage(name, { source: { http: slowHttp } }));
    await followUntil(cluster.kube, name, ({ phase }) => phase === 'Downloading');
    await cluster.kube.delete(images, { namespace, name });
    await restart('SIGKILL');
    expect(await remainsOf(name)).toEqual([]);
  });

  it('stops transfers with SIGTERM and resumes them at the next start, without a failure', async () => {
    const name = 'paused';
    await cluster.kube.create(images, anImage(name, { source: { http: slowHttp } }));
    await followUntil(cluster.kube, name, ({ phase }) => phase === 'Downloading');
    await cluster.kill('SIGTERM');
    expect(await processesOf(dataDir)).toEqual([]);
    cluster = await startClusterProcess(dataDir);
    expect(await outcomeOf(name)).toEqual(imported(name));
    expect(await remainsOf(name)).toEqual([]);
  });

  it('rejects a second cluster on the same directory, with a message', async () => {
    await expect(startClusterProcess(dataDir)).rejects.toThrow(/already runs on .*--data-dir/);
    expect(cluster.output).toEqual([`ready kubeconfig=${cluster.kubeconfigPath}`]);
  });
});
