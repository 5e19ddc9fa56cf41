// The overlay `single` without a kubelet: an API server with its manifests, and each replica as a process that starts the bundle with the account
// of the Deployment. Nothing of the product runs in the test.
import { type ChildProcess, spawn } from 'node:child_process';
import { readFile } from 'node:fs/promises';
import { type Server, type Socket, connect, createServer } from 'node:net';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { parseAllDocuments } from 'yaml';
import { createAccounts } from '#infra/local/accounts.ts';
import { operatorCrds, readCrds, repositoryDir, systemNamespace } from '#infra/local/manifests.ts';
import { createApiServer } from '#local-cluster/api-server/server.ts';
import { snapshotCrds } from '#local-cluster/controllers/snapshots/crds.ts';
import { startControllers } from '#local-cluster/controllers/start.ts';
import { ensureClasses } from '#local-cluster/controllers/volumes/classes.ts';
import { freePorts } from '#local-cluster/free-ports.ts';
import { applyObjects, installCrds } from '#local-cluster/install.ts';
import { createUndo } from '#local-cluster/undo.ts';
import type { KubeObject } from '#shared/api/object.ts';
import type { KubeClient } from '#shared/clients/kube/client.ts';
import { createKubeClient, loadKubeConfig } from '#shared/clients/kube/create.ts';
import { defaultSettings } from '#shared/populate/settings.ts';
import { recordCalls } from '#test/roles/calls.ts';
import { ensureBundles } from '#test/support/bundles.ts';
import { infraDir, renderText } from '#test/support/overlay.ts';

const portNames = ['http', 'events', 'admission', 'import', 'metrics'] as const;
type Ports = Readonly<Record<(typeof portNames)[number], number>>;

export interface Replica {
  readonly name: string;
  readonly pid: number;
  readonly ports: Ports;
  /** Its log so far. */
  readonly log: () => string;
  /** Milliseconds from its start until `/readyz` answered. */
  readonly untilReady: () => Promise<number>;
  /** MiB. */
  readonly resident: () => Promise<number>;
  /** Resolves to the exit code, `null` after SIGKILL. */
  readonly kill: (signal: NodeJS.Signals) => Promise<number | null>;
}

export interface SingleCluster {
  readonly kube: KubeClient;
  readonly kubeconfigPath: string;
  readonly dataDir: string;
  readonly transferUrl: string;
  readonly start: (name: string) => Replica;
  readonly close: () => Promise<void>;
}

/** What a Service is for its clients: a port that leads to whichever replica listens. */
const startFront = async (
  portsOf: () => readonly number[],
): Promise<{ readonly port: number; readonly server: Server }> => {
  const lead = (client: Socket, [port, ...others]: readonly number[]): void => {
    if (port === undefined) return void client.destroy();
    const to = connect(port, '127.0.0.1');
    to.once('connect', () => {
      client.pipe(to).pipe(client);
      to.removeAllListeners('error').on('error', () => client.destroy());
    });
    to.once('error', () => lead(client, others));
    client.once('close', () => to.destroy());
  };
  const server = createServer((client) => {
    client.on('error', () => client.destroy());
    lead(client, portsOf());
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return { server, port: (server.address() as AddressInfo).port };
};

const until = async (isSo: () => Promise<boolean>, what: string, seconds = 60): Promise<void> => {
  const end = Date.now() + seconds * 1000;
  while (!(await isSo().catch(() => false))) {
    if (Date.now() > end) throw new Error(`${what} not after ${seconds} s`);
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
};

export const startSingleCluster = async (dataDir: string): Promise<SingleCluster> => {
  const undo = createUndo();
  const { dir: bundleDir } = await ensureBundles('functions');
  const replicas: Replica[] = [];
  const front = async (name: (typeof portNames)[number]): Promise<number> => {
    const { port, server } = await startFront(() => replicas.map(({ ports }) => ports[name]));
    undo.add(async () => void server.close());
    return port;
  };
  const fronts = { admission: await front('admission'), http: await front('http'), events: await front('events') };
  const server = await createApiServer({
    dataDir: join(dataDir, 'api-server'),
    audit: recordCalls(process.env['BULLION_CALLS']),
    resolveService: ({ name }) =>
      name === 'validate' || name === 'mutate' ? { host: '127.0.0.1', port: fronts.admission } : undefined,
  });
  undo.add(server.close);
  const kube = createKubeClient(loadKubeConfig(server.kubeconfigPath));
  await installCrds(kube, [...snapshotCrds, ...operatorCrds, ...(await readCrds())]);
  await ensureClasses(kube);
  const objects = parseAllDocuments(renderText(join(infraDir, 'overlays/single'))).map(
    (document) => document.toJS() as KubeObject,
  );
  await applyObjects(
    kube,
    objects.filter(({ kind }) => kind !== 'CustomResourceDefinition'),
  );
  const account = 'bullion';
  const kubeconfigs = await createAccounts(kube, [account], {
    kubeconfigPath: server.kubeconfigPath,
    namespace: systemNamespace,
    dir: join(dataDir, 'accounts'),
  });
  const controllers = await startControllers({
    kube,
    dataDir,
    report: () => undefined,
    backOffFactor: 0.01,
    host: {
      images: { [defaultSettings.transferImage]: ['node', join(bundleDir, 'start.mjs'), 'transfer-job'] },
      nodePath: process.execPath,
      workingDir: repositoryDir,
      env: { PATH: process.env['PATH'] ?? '' },
    },
  });
  undo.add(() => controllers.stop());
  const transferUrl = `http://127.0.0.1:${fronts.http}`;
  const free = [...(await freePorts(20))];
  const start = (name: string): Replica => {
    const ports = Object.fromEntries(portNames.map((port) => [port, free.pop() ?? 0])) as Ports;
    const replica = startReplica(bundleDir, name, ports, {
      KUBECONFIG: kubeconfigs[account],
      ALLOWED_ADDRESSES: '127.0.0.0/8,::1/128',
      TRANSFER_COMMAND: `node ${join(bundleDir, 'start.mjs')} transfer-job`,
      TRANSFER_URL: transferUrl,
      PUBLIC_URL: transferUrl,
      TRANSFER_SINK: `http://127.0.0.1:${fronts.events}/${systemNamespace}/bullion`,
    });
    replicas.push(replica);
    undo.add(() => replica.kill('SIGKILL'));
    return replica;
  };
  return { kube, kubeconfigPath: server.kubeconfigPath, dataDir, transferUrl, start, close: undo.all };
};

const startReplica = (
  bundleDir: string,
  name: string,
  ports: Ports,
  env: Readonly<Record<string, string>>,
): Replica => {
  const begun = Date.now();
  const child: ChildProcess = spawn(process.execPath, [join(bundleDir, 'start.mjs'), 'single'], {
    env: {
      ...env,
      PATH: process.env['PATH'],
      POD_NAME: name,
      PORT: String(ports.http),
      EVENTS_PORT: String(ports.events),
      ADMISSION_PORT: String(ports.admission),
      IMPORT_PORT: String(ports.import),
      METRICS_PORT: String(ports.metrics),
    },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  let log = '';
  for (const stream of [child.stdout, child.stderr]) stream?.on('data', (chunk: Buffer) => (log += chunk.toString()));
  const ended = new Promise<number | null>((resolve) => child.once('exit', (code) => resolve(code)));
  const pid = child.pid ?? 0;
  return {
    name,
    pid,
    ports,
    log: () => log,
    untilReady: async () => {
      const isReady = async () => (await fetch(`http://127.0.0.1:${ports.http}/readyz`)).status === 200;
      await until(isReady, `${name} is ready`).catch((error: unknown) => {
        throw new Error(`${String(error)}:\n${log}`);
      });
      return Date.now() - begun;
    },
    resident: async () => {
      const kib = /VmRSS:\s+(\d+) kB/.exec(await readFile(`/proc/${pid}/status`, 'utf8'))?.[1];
      return Number(kib) / 1024;
    },
    kill: async (signal) => {
      child.kill(signal);
      return ended;
    },
  };
};
