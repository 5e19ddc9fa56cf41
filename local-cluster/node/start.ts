// Starts the node: control plane, container runtime, kubelet, Services, DNS, storage. Called by main.ts and test/cluster.
import { execFile } from 'node:child_process';
import { mkdir, readFile, readdir, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { promisify } from 'node:util';
import { parse } from 'yaml';
import { snapshotterPrograms, storageObjects, storagePrograms } from '#local-cluster/csi-driver/programs.ts';
import { applyObjects, installCrds } from '#local-cluster/install.ts';
import { allowForwarding, cleanNode, makeGroup } from '#local-cluster/node/clean.ts';
import { type Program, controlPlane } from '#local-cluster/node/control-plane.ts';
import { configFiles, probeImage } from '#local-cluster/node/files.ts';
import { createIdentities } from '#local-cluster/node/identities.ts';
import { importProgram } from '#local-cluster/node/images.ts';
import { type NodePaths, network, nodeName } from '#local-cluster/node/layout.ts';
import type { Programs } from '#local-cluster/node/programs.ts';
import { type Daemon, startDaemon } from '#local-cluster/real-api-server/process.ts';
import { namespaces } from '#shared/api/foreign/core.ts';
import type { KubeObject } from '#shared/api/object.ts';
import type { KubeClient } from '#shared/clients/kube/client.ts';
import { createKubeClient, loadKubeConfig } from '#shared/clients/kube/create.ts';
import { Unavailable, isRetryable } from '#shared/runtime/errors.ts';

const exec = promisify(execFile);

export interface LocalNode {
  readonly paths: NodePaths;
  readonly kube: KubeClient;
  /** Starts programs that have ended again, as an init system does, until `signal` is aborted. */
  readonly supervise: (signal: AbortSignal) => Promise<void>;
}

interface Options {
  readonly paths: NodePaths;
  readonly programs: Programs;
  readonly report: (line: string) => void;
  /** When aborted, the start ends with its reason. */
  readonly signal: AbortSignal;
}

/** Ready means: pods are scheduled, run, and get volumes. Nothing is taken down here: `cleanNode` does so, after a failure, too. */
export const startNode = async ({ paths, programs, report, signal }: Options): Promise<LocalNode> => {
  // What a crash left; a node begins empty.
  await cleanNode(paths);
  await mkdir(paths.pids, { recursive: true, mode: 0o700 });
  const identities = await createIdentities(paths);
  await writeAll(paths.config, configFiles(paths, identities));
  await makeNetwork(paths);
  await makeGroup();
  const daemons = createDaemons(paths, programs);
  const until = untilDone(daemons, signal);
  const kube = createKubeClient(loadKubeConfig(paths.kubeconfig));

  report('starting the control plane');
  const [etcd, apiServer, ...controllers] = await controlPlane(paths, identities);
  for (const program of [etcd, apiServer]) if (program !== undefined) await daemons.start(program);
  await until('the API server', async () => (await kube.get(namespaces, { name: 'default' })) !== undefined);
  for (const program of controllers) await daemons.start(program);

  report('starting the node');
  await daemons.start({ name: 'containerd', args: ['--config', join(paths.config, 'containerd.toml')] });
  await until('containerd', () => succeeds('ctr', ['--address', paths.socket, 'version']));
  await importProgram(paths.socket, programs.of('probe'), probeImage);
  for (const program of nodePrograms(paths, identities.kubeconfigs.kubelet)) await daemons.start(program);

  await installCrds(kube, await readDefinitions(programs.definitions));
  for (const program of storagePrograms(paths, programs)) await daemons.start(program);
  await until('the storage driver', async () =>
    hasDriver(await kube.raw<CsiNode>({ method: 'GET', path: csiNodePath })),
  );
  for (const program of snapshotterPrograms(paths)) await daemons.start(program);
  await applyObjects(kube, storageObjects);
  await until('the node', async () =>
    isReady(await kube.raw<Node>({ method: 'GET', path: `/api/v1/nodes/${nodeName}` })),
  );
  return { paths, kube, supervise: (until) => supervise(daemons, report, until) };
};

const writeAll = async (folder: string, files: Readonly<Record<string, string>>): Promise<void> => {
  for (const [name, text] of Object.entries(files)) {
    await mkdir(dirname(join(folder, name)), { recursive: true });
    await writeFile(join(folder, name), text, { mode: 0o600 });
  }
};

const makeNetwork = async (paths: NodePaths): Promise<void> => {
  await exec('ip', ['link', 'add', network.link, 'type', 'bridge']);
  await exec('ip', ['address', 'add', `${network.node}/32`, 'dev', network.link]);
  await exec('ip', ['link', 'set', network.link, 'up']);
  await allowForwarding(paths);
};

const nodePrograms = ({ config, kubelet }: NodePaths, kubeconfig: string): readonly Program[] => [
  {
    name: 'kubelet',
    args: [
      `--config=${join(config, 'kubelet.yaml')}`,
      `--kubeconfig=${kubeconfig}`,
      `--root-dir=${kubelet}`,
      `--cert-dir=${join(kubelet, 'pki')}`,
      `--hostname-override=${nodeName}`,
      `--node-ip=${network.node}`,
    ],
  },
  { name: 'kube-proxy', args: [`--config=${join(config, 'proxy.yaml')}`] },
  { name: 'dns', args: ['-conf', join(config, 'Corefile')] },
];

interface Daemons {
  readonly start: (program: Program) => Promise<void>;
  /** Throws Unavailable with the end of the log of the first one that has ended. */
  readonly assertRunning: () => Promise<void>;
  /** Starts those that have ended again; returns their names. */
  readonly revive: () => Promise<readonly string[]>;
}

interface Started {
  readonly program: Program;
  readonly daemon: Daemon;
  readonly place: number;
}

/** The number in a file's name tells in which order they were started. */
const createDaemons = ({ logs, pids }: NodePaths, programs: Programs): Daemons => {
  const running = new Map<string, Started>();
  const start = async (program: Program, place = running.size): Promise<void> => {
    const { name, args } = program;
    const [command, ...first] = commandOf(name, programs);
    const pidFile = join(pids, `${String(place).padStart(2, '0')}-${name}.pid`);
    const spec = { name, command, args: [...first, ...args], logFile: join(logs, `${name}.log`), pidFile };
    running.set(name, { program, daemon: await startDaemon(spec), place });
  };
  const hasEnded = ({ daemon }: Started): Promise<boolean> =>
    daemon.assertRunning().then(
      () => false,
      () => true,
    );
  return {
    start: (program) => start(program),
    assertRunning: async () => {
      for (const { daemon } of running.values()) await daemon.assertRunning();
    },
    revive: async () => {
      const names: string[] = [];
      for (const [name, started] of running) {
        if (!(await hasEnded(started))) continue;
        await start(started.program, started.place);
        names.push(name);
      }
      return names;
    },
  };
};

const supervise = async (daemons: Daemons, report: (line: string) => void, until: AbortSignal): Promise<void> => {
  while (!until.aborted) {
    for (const name of await daemons.revive()) report(`${name} had ended, and was started again`);
    await sleep(500, undefined, { signal: until }).catch(() => undefined);
  }
};

const commandOf = (name: string, programs: Programs): readonly [string, ...string[]] => {
  if (name === 'containerd') return ['/usr/bin/containerd'];
  if (name === 'csi-driver') return [process.execPath, join(import.meta.dirname, '../csi-driver/main.ts')];
  return [programs.of(name)];
};

/** Seconds until each part must be there. */
const partSeconds = 120;

const untilDone =
  (daemons: Daemons, signal: AbortSignal) =>
  async (what: string, isDone: () => Promise<boolean>): Promise<void> => {
    const deadline = Date.now() + partSeconds * 1000;
    const isDoneNow = (): Promise<boolean> =>
      isDone().catch((error: unknown) => {
        if (isRetryable(error) || isAbsent(error)) return false;
        throw error;
      });
    while (!(await isDoneNow())) {
      signal.throwIfAborted();
      await daemons.assertRunning();
      if (Date.now() > deadline) throw new Unavailable(`${what} was not ready after ${partSeconds} s`);
      await sleep(100);
    }
  };

const isAbsent = (error: unknown): boolean => (error as { readonly code?: string }).code === 'NotFound';

const succeeds = (program: string, args: readonly string[]): Promise<boolean> =>
  exec(program, args).then(
    () => true,
    () => false,
  );

interface CsiNode {
  readonly spec: { readonly drivers: readonly object[] | null };
}

const csiNodePath = `/apis/storage.k8s.io/v1/csinodes/${nodeName}`;
const hasDriver = ({ spec }: CsiNode): boolean => (spec.drivers ?? []).length > 0;

interface Node {
  readonly status: { readonly conditions: readonly { readonly type: string; readonly status: string }[] };
}

const isReady = ({ status }: Node): boolean =>
  status.conditions.some(({ type, status: value }) => type === 'Ready' && value === 'True');

const readDefinitions = async (folder: string): Promise<readonly KubeObject[]> => {
  const files = await readdir(folder);
  return Promise.all(files.map(async (file) => parse(await readFile(join(folder, file), 'utf8')) as KubeObject));
};
