// `npm run bench -- burst`: events of many new images at once, at one process of `initialize` as it is shipped, by how many it handles at a time: what a
// pod needs decides `containerConcurrency` of its Knative Service, and that how many pods a burst starts. The embedded API server has a process of its own.
import { type ChildProcess, spawn } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { parseArgs } from 'node:util';
import { KubeConfig } from '@kubernetes/client-node';
import { Agent, request } from 'undici';
import { eventTypes } from '#events/catalogue.ts';
import { encodeEvent } from '#events/message.ts';
import { buildBundles } from '#infra/bundle/build.ts';
import { readCrds } from '#infra/local/manifests.ts';
import { installCrds } from '#local-cluster/install.ts';
import { jobs, storageClasses } from '#shared/api/foreign/core.ts';
import { type HyperCloudImage, hyperCloudImageKind } from '#shared/api/hypercloud/image.ts';
import type { KubeClient } from '#shared/clients/kube/client.ts';
import { createKubeClient, loadKubeConfig } from '#shared/clients/kube/create.ts';
import { cpuSeconds } from '#test/bench/processes.ts';
import { toTable } from '#test/bench/table.ts';
import { type Access, startServerProcess } from '#test/support/api-server/process.ts';

const type = hyperCloudImageKind.type;
/** As the limit of the container (`infra/generate/manifest.ts`). */
const limitMiB = 256;

export const run = async (args: readonly string[]): Promise<void> => {
  const { values } = parseArgs({
    args: [...args],
    options: { images: { type: 'string', default: '100' }, at: { type: 'string', default: '10,35,70,100' } },
  });
  const dir = await mkdtemp(join(tmpdir(), 'bullion-bench-burst-'));
  const server = startServerProcess({ dataDir: dir });
  try {
    const kubeconfig = join(dir, 'kubeconfig');
    const kube = await connect(kubeconfig, await server.ready);
    await buildBundles(join(dir, 'functions'));
    const rows: string[][] = [];
    for (const atOnce of values.at.split(',').map(Number))
      rows.push(await measure({ kube, kubeconfig, dir, images: Number(values.images), atOnce }));
    console.log(toTable([['at once', 'seconds', 'p50 ms', 'p99 ms', 'CPU s', 'MiB at most', 'not 204'], ...rows]));
    console.log(`the limit of the container is ${limitMiB} MiB`);
  } finally {
    await server.kill();
    await rm(dir, { recursive: true, force: true });
  }
};

const connect = async (file: string, { url, token, caPem }: Access): Promise<KubeClient> => {
  const config = new KubeConfig();
  const cluster = { name: 'bench', server: url, caData: Buffer.from(caPem).toString('base64'), skipTLSVerify: false };
  config.loadFromClusterAndUser(cluster, { name: 'bench', token });
  await writeFile(file, config.exportConfig());
  const kube = createKubeClient(loadKubeConfig(file));
  await installCrds(kube, await readCrds());
  await kube.create(storageClasses, {
    apiVersion: 'storage.k8s.io/v1',
    kind: 'StorageClass',
    metadata: { name: 'local' },
    provisioner: 'local.example',
  });
  return kube;
};

interface Burst {
  readonly kube: KubeClient;
  readonly kubeconfig: string;
  readonly dir: string;
  readonly images: number;
  readonly atOnce: number;
}

const create = async ({ kube, images, atOnce }: Burst): Promise<readonly HyperCloudImage[]> => {
  const made: HyperCloudImage[] = [];
  for (let index = 0; index < images; index += 1) {
    const image: HyperCloudImage = {
      apiVersion: 'hypercloud.tmaxanc.com/v1alpha1',
      kind: 'VirtualMachineImage',
      metadata: { name: `image-${atOnce}-${index}`, namespace: 'default' },
      spec: {
        source: { http: 'https://images.example/disk.qcow2' },
        storageClassName: 'local',
        pvc: { resources: { requests: { storage: '1Gi' } } },
      } as HyperCloudImage['spec'],
    };
    made.push(await kube.create(type, image));
  }
  return made;
};

const start = async ({ dir, kubeconfig }: Burst): Promise<{ readonly child: ChildProcess; readonly url: string }> => {
  const child = spawn(process.execPath, [join(dir, 'functions', 'start.mjs'), 'initialize'], {
    env: { PATH: process.env['PATH'], KUBECONFIG: kubeconfig, PORT: '0' },
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  for await (const line of createInterface(child.stdout!)) {
    const url = /"url":"([^"]+)"/.exec(line)?.[1];
    if (url !== undefined) return { child, url };
  }
  throw new Error('the function ended before it listened');
};

const peakMiB = (pid: number): number =>
  Number(/^VmHWM:\s+(\d+) kB/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1]) / 1024;

const measure = async (burst: Burst): Promise<string[]> => {
  const waiting = [...(await create(burst))];
  const { child, url } = await start(burst);
  child.stdout?.resume();
  const dispatcher = new Agent({ connections: burst.atOnce });
  const times: number[] = [];
  let others = 0;
  const post = async (image: HyperCloudImage): Promise<void> => {
    const { headers, body } = encodeEvent({
      id: image.metadata.uid ?? '',
      source: 'https://10.96.0.1:443',
      type: eventTypes.objectAdded,
      datacontenttype: 'application/json',
      extensions: { apiversion: image.apiVersion, kind: image.kind, name: image.metadata.name, namespace: 'default' },
      data: image,
    });
    const begun = performance.now();
    const response = await request(url, {
      method: 'POST',
      dispatcher,
      headers: { ...headers },
      body: Buffer.from(body),
    });
    await response.body.dump();
    times.push(performance.now() - begun);
    if (response.statusCode !== 204) others += 1;
  };
  const work = async (): Promise<void> => {
    for (let image = waiting.pop(); image !== undefined; image = waiting.pop()) await post(image);
  };
  const begun = performance.now();
  await Promise.all(Array.from({ length: burst.atOnce }, work));
  const seconds = (performance.now() - begun) / 1000;
  const pid = child.pid ?? 0;
  const figures = [seconds.toFixed(1), ...quantiles(times), cpuSeconds([pid]).toFixed(1), peakMiB(pid).toFixed(0)];
  const gone = new Promise((resolve) => child.once('exit', resolve));
  child.kill('SIGTERM');
  await gone;
  await dispatcher.close();
  const { items } = await burst.kube.list(jobs, { namespace: 'default' });
  if (items.length === 0) throw new Error('no image has a Job: the burst has done nothing');
  return [String(burst.atOnce), ...figures, String(others)];
};

const quantiles = (times: readonly number[]): readonly string[] => {
  const sorted = times.toSorted((one, other) => one - other);
  return [0.5, 0.99].map((share) => (sorted[Math.ceil(sorted.length * share) - 1] ?? 0).toFixed(0));
};
