// `npm run test:faults -- --soak N`: objects of all kinds in flight on a whole local cluster, of which everything is killed N times at random moments: the
// cluster, and in some rounds the processes of its Jobs, too. What is finished is compared byte by byte, deleted, and replaced by another one; at the end
// nothing may be wrong, stuck or left over.
import { mkdtemp, readFile, readdir, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { writeBootDisk } from '#infra/local/demo/boot-disk.ts';
import { startFileServer } from '#infra/local/demo/file-server.ts';
import { proveIdentical } from '#infra/local/demo/prove.ts';
import { configMaps, persistentVolumeClaims, persistentVolumes } from '#shared/api/foreign/core.ts';
import { annotations, registriesConfig, systemNamespace } from '#shared/api/names.ts';
import { apiVersionOf } from '#shared/api/object.ts';
import { ImageManifest } from '#shared/clients/registry/manifest.ts';
import { isRetryable, messageOf } from '#shared/runtime/errors.ts';
import { type ClusterProcess, leftOvers, run, startClusterProcess } from '#test/support/cluster.ts';
import { type Loose, type Sort, type World, dataVolumeSort, namespace, sorts } from '#test/faults/soak-sorts.ts';
import { type Random, createRandom } from '#test/support/random.ts';
import { pushDisk } from '#test/support/registry/images.ts';
import { startRegistry } from '#test/support/registry/server.ts';

const mib = 2 ** 20;
/** In flight at any time. */
const most = 30;
/** After the last kill, everything must have come to its end. */
const settleMs = 8 * 60_000;

interface Flight {
  readonly sort: Sort;
  readonly name: string;
  retries: number;
}

export interface SoakReport {
  /** Processes of Jobs that were killed besides the cluster. */
  readonly workers: number;
  readonly finished: Readonly<Record<string, number>>;
  /** Objects that failed after too many kills, and succeeded when they were retried. */
  readonly retried: number;
  readonly faults: readonly string[];
}

const create = (cluster: ClusterProcess, world: World, { sort, name }: Flight): Promise<unknown> =>
  cluster.kube.create(sort.type, {
    apiVersion: apiVersionOf(sort.type),
    kind: sort.type.kind,
    metadata: { namespace, name },
    spec: sort.spec(world, name),
  });

/** Processes that have the data directory in their command line. */
const processesOf = async (dataDir: string): Promise<readonly number[]> => {
  const found: number[] = [];
  for (const name of await readdir('/proc')) {
    if (!/^\d+$/.test(name) || Number(name) === process.pid) continue;
    const line = await readFile(`/proc/${name}/cmdline`, 'utf8').catch(() => '');
    const environment = line === '' ? '' : await readFile(`/proc/${name}/environ`, 'utf8').catch(() => '');
    if (line.includes(dataDir) || environment.includes(dataDir)) found.push(Number(name));
  }
  return found;
};

const kill = (pids: readonly number[]): number => {
  let count = 0;
  for (const pid of pids) {
    try {
      process.kill(pid, 'SIGKILL');
      count += 1;
    } catch {
      // It has ended.
    }
  }
  return count;
};

const compare = async (cluster: ClusterProcess, world: World, claim: string): Promise<void> => {
  const { spec } = (await cluster.kube.get(persistentVolumeClaims, { namespace, name: claim })) ?? {};
  const volume = await cluster.kube.get(persistentVolumes, { name: spec?.volumeName ?? 'none' });
  const folder = join(world.dataDir, 'storage/volumes', volume?.spec.csi?.volumeHandle ?? 'none');
  const disk = join(folder, spec?.volumeMode === 'Block' ? 'block' : 'fs/disk.img');
  await proveIdentical(disk, { file: world.raw, format: 'raw', compression: 'none' }, world.dir);
};

/** The qcow2 in the layer that was pushed: its entry of the archive comes after that of its folder. */
const comparePushed = async ({ registry, dir, raw }: World, name: string): Promise<void> => {
  const base = `http://${registry.direct}/v2/soak/disk`;
  const accept = { accept: 'application/vnd.oci.image.manifest.v1+json' };
  const manifest = ImageManifest.parse(await (await fetch(`${base}/manifests/${name}`, { headers: accept })).json());
  const blob = await fetch(`${base}/blobs/${manifest.layers[0]?.digest ?? ''}`);
  const layer = Buffer.from(await blob.arrayBuffer());
  const size = Number.parseInt(layer.toString('latin1', 512 + 124, 512 + 135), 8);
  const file = join(dir, 'pushed.qcow2');
  await writeFile(file, layer.subarray(1024, 1024 + size));
  await proveIdentical(raw, { file, format: 'qcow2', compression: 'none' }, dir);
};

/** What goes on, and what came of it. */
interface Soak {
  readonly world: World;
  readonly flights: Flight[];
  readonly faults: string[];
  readonly finished: Record<string, number>;
  cluster: ClusterProcess;
  made: number;
  retried: number;
  workers: number;
}

const fill = async (soak: Soak): Promise<void> => {
  while (soak.flights.length < most) {
    const sort = sorts[soak.made % sorts.length]!;
    const flight = { sort, name: `${sort.name}-${soak.made}`, retries: 0 };
    soak.made += 1;
    await create(soak.cluster, soak.world, flight);
    soak.flights.push(flight);
  }
};

const finish = async (soak: Soak, flight: Flight, object: Loose): Promise<void> => {
  const { cluster, world, faults, finished } = soak;
  const { sort, name } = flight;
  const claim = sort.claimOf(object);
  try {
    if (claim !== undefined) await compare(cluster, world, claim);
    else await comparePushed(world, name);
  } catch (error) {
    if (isRetryable(error)) throw error;
    faults.push(`${name}: ${messageOf(error)}`);
  }
  await cluster.kube.delete(sort.type, { namespace, name });
  finished[sort.name] = (finished[sort.name] ?? 0) + 1;
  if (flight.retries > 0) soak.retried += 1;
  soak.flights.splice(soak.flights.indexOf(flight), 1);
};

const retry = async ({ cluster }: Soak, flight: Flight): Promise<void> => {
  flight.retries += 1;
  const again = { metadata: { annotations: { [annotations.retry]: String(flight.retries) } } };
  await cluster.kube.mergePatch(flight.sort.type, { namespace, name: flight.name }, again);
};

/** Looks at each flight once. */
const look = async (soak: Soak): Promise<void> => {
  for (const flight of soak.flights.slice()) {
    const object = await soak.cluster.kube.get(flight.sort.type, { namespace, name: flight.name });
    if (object === undefined) {
      soak.faults.push(`${flight.name}: is gone`);
      soak.flights.splice(soak.flights.indexOf(flight), 1);
      continue;
    }
    const phase = flight.sort.phase(object.status ?? {});
    if (phase === 'done') await finish(soak, flight, object);
    if (phase === 'failed') await retry(soak, flight);
  }
};

const restart = async (soak: Soak): Promise<void> => {
  soak.cluster = await startClusterProcess(soak.world.dataDir);
};

/** The claim that is cloned and exported, and the registry, which has no TLS: functions read that when they start. */
const begin = async (soak: Soak): Promise<void> => {
  const { cluster, world } = soak;
  await cluster.kube.create(configMaps, {
    apiVersion: 'v1',
    kind: 'ConfigMap',
    metadata: { namespace: systemNamespace, name: registriesConfig.name },
    data: { [registriesConfig.key]: `[[registry]]\nlocation = "${world.registry.host}"\ninsecure = true\n` },
  });
  await cluster.kill('SIGTERM');
  await restart(soak);
  await create(soak.cluster, world, { sort: dataVolumeSort, name: 'origin', retries: 0 });
  const key = { namespace, name: 'origin' };
  while ((await soak.cluster.kube.get(dataVolumeSort.type, key))?.status?.['phase'] !== 'Succeeded') await sleep(200);
};

const killRounds = async (soak: Soak, rounds: number, random: Random): Promise<void> => {
  for (let round = 1; round <= rounds && soak.faults.length === 0; round += 1) {
    await fill(soak);
    await sleep(random.below(3_000));
    await soak.cluster.kill('SIGKILL');
    if (random.chance(0.15)) soak.workers += kill(await processesOf(soak.world.dataDir));
    await restart(soak);
    if (round % 3 === 0) await look(soak);
    if (round % 10 === 0)
      console.log(`round ${round}: ${JSON.stringify(soak.finished)}, ${soak.workers} processes of Jobs killed`);
  }
};

const settle = async (soak: Soak): Promise<void> => {
  const { flights, faults, world } = soak;
  const { kube } = soak.cluster;
  for (const end = Date.now() + settleMs; flights.length > 0 && Date.now() < end; await sleep(500)) await look(soak);
  for (const { sort, name } of flights) {
    const object = await kube.get(sort.type, { namespace, name });
    faults.push(`${name}: has not come to an end: ${JSON.stringify(object?.status?.['conditions'] ?? object?.status)}`);
  }
  await kube.delete(dataVolumeSort.type, { namespace, name: 'origin' });
  if (faults.length === 0) for (const left of await leftOvers(kube, world.dataDir)) faults.push(`left over: ${left}`);
};

/** Kills everything `rounds` times. Keeps the data where something is wrong. */
export const runSoak = async (rounds: number, seed: number): Promise<SoakReport> => {
  const dir = await mkdtemp(join(tmpdir(), 'bullion-soak-'));
  const [dataDir, raw, qcow2] = ['cluster', 'disk.raw', 'disk.qcow2'].map((name) => join(dir, name)) as [
    string,
    string,
    string,
  ];
  await writeBootDisk(raw, { bytes: 32 * mib, dataBytes: 6 * mib });
  await run('qemu-img', ['convert', '-f', 'raw', '-O', 'qcow2', raw, qcow2]);
  const server = await startFileServer({ bytesPerSecond: 8 * mib });
  const registry = await startRegistry();
  await pushDisk({ host: registry.direct, repository: 'soak/source' }, await readFile(qcow2), 'one');
  const image = `docker://${registry.host}/soak/source:one`;
  const world: World = { dir, dataDir, raw, http: server.offer('disk.qcow2', qcow2), image, registry };
  const cluster = await startClusterProcess(dataDir);
  const soak: Soak = { world, cluster, flights: [], faults: [], finished: {}, made: 0, retried: 0, workers: 0 };
  try {
    await begin(soak);
    await killRounds(soak, rounds, createRandom(seed));
    await settle(soak);
  } finally {
    await soak.cluster.kill('SIGTERM');
    kill(await processesOf(dataDir));
    await server.close();
    await registry.close();
    if (soak.faults.length === 0) await rm(dir, { recursive: true, force: true });
    else console.log(`kept: ${dir}`);
  }
  const { workers, finished, retried, faults } = soak;
  return { workers, finished, retried, faults };
};
