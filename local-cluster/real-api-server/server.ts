// A real kube-apiserver with its etcd as child processes on loopback, with the same interface as the embedded server.
// Called by the local cluster (`npm start -- --apiserver=real`) and by the conformance suite.
import { createHash } from 'node:crypto';
import { chmod, mkdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { Agent, request } from 'undici';
import { freePorts } from '#local-cluster/free-ports.ts';
import { buildKubeconfig, ensureControlPlaneFiles, ensureToken } from './certificates.ts';
import { apiServerFlags, type ControlPlaneLayout, etcdFlags } from '#local-cluster/real-api-server/flags.ts';
import { type Daemon, type DaemonSpec, startDaemon, stopLeftover } from '#local-cluster/real-api-server/process.ts';
import { Unavailable } from '#shared/runtime/errors.ts';

/** Milliseconds until the server must be ready; the first start on a slow machine takes about twenty seconds. */
const readyMs = 120_000;

export interface RealApiServerOptions {
  /** Folder with `etcd` and `kube-apiserver` (KUBEBUILDER_ASSETS). */
  readonly assetsDir: string;
  /** All data of the server; the same folder gives the same cluster again. */
  readonly dataDir: string;
  /** Default: any free port. */
  readonly port?: number;
  /** False: writes do not wait for the disk; for disposable servers. Default: true. */
  readonly durable?: boolean;
  /** For kube-apiserver, after the default flags. */
  readonly extraFlags?: readonly string[];
}

export interface RealApiServer {
  /** `https://127.0.0.1:<port>` */
  readonly url: string;
  /** Grants all permissions (group `system:masters`). */
  readonly kubeconfigPath: string;
  readonly caPem: string;
  readonly token: string;
  /** Compacts all history up to now, as etcd's compaction does every five minutes. */
  readonly compact: () => Promise<void>;
  readonly close: () => Promise<void>;
}

/** Returns when the API is ready. Throws Unavailable with the end of the log of the process that failed. */
export const startRealApiServer = async (options: RealApiServerOptions): Promise<RealApiServer> => {
  const { dataDir } = options;
  await mkdir(dataDir, { recursive: true, mode: 0o700 });
  const layout = await layoutOf(options);
  const caPem = await readFile(layout.files.ca, 'utf8');
  const token = await writeTokens(dataDir, layout.tokenFile);
  const url = `https://127.0.0.1:${layout.apiPort}`;
  const kubeconfigPath = join(dataDir, 'kubeconfig');
  await writeFile(kubeconfigPath, buildKubeconfig({ url, caPem, token }), { mode: 0o600 });

  const stop = await startProcesses(options.assetsDir, layout, { url, token, caPem });
  return { url, kubeconfigPath, caPem, token, compact: () => compactEtcd(layout), close: stop };
};

const processNames = ['etcd', 'kube-apiserver'] as const;
type ProcessName = (typeof processNames)[number];
const pidFileOf = (dataDir: string, name: ProcessName): string => join(dataDir, `${name}.pid`);

/** Ends what a killed run has left behind in the folder; its ports are free afterwards. */
export const stopLeftovers = async (dataDir: string): Promise<void> => {
  // Last started, first stopped: without its etcd, kube-apiserver takes long to exit.
  for (const name of processNames.toReversed()) await stopLeftover(pidFileOf(dataDir, name));
};

interface Access {
  readonly url: string;
  readonly token: string;
  readonly caPem: string;
}

const startProcesses = async (
  assetsDir: string,
  layout: ControlPlaneLayout,
  access: Access,
): Promise<() => Promise<void>> => {
  const { dataDir } = layout;
  const specOf = (name: ProcessName, args: readonly string[]): DaemonSpec => ({
    name,
    args,
    command: join(assetsDir, name),
    logFile: join(dataDir, 'logs', `${name}.log`),
    pidFile: pidFileOf(dataDir, name),
  });
  const specs = [specOf('etcd', etcdFlags(layout)), specOf('kube-apiserver', apiServerFlags(layout))];
  await stopLeftovers(dataDir);
  const daemons: Daemon[] = [];
  const stop = async (): Promise<void> => {
    for (const daemon of daemons.splice(0).toReversed()) await daemon.stop();
  };
  try {
    for (const spec of specs) daemons.push(await startDaemon(spec));
    await untilReady(access, daemons);
  } catch (error) {
    await stop();
    throw error;
  }
  return stop;
};

const layoutOf = async ({ dataDir, port, durable, extraFlags }: RealApiServerOptions): Promise<ControlPlaneLayout> => {
  const [apiPort = 0, etcdPort = 0, etcdPeerPort = 0] = await freePorts(3);
  return {
    dataDir,
    files: await ensureControlPlaneFiles(join(dataDir, 'pki')),
    tokenFile: join(dataDir, 'pki', 'tokens.csv'),
    apiPort: port === undefined || port === 0 ? apiPort : port,
    etcdPort,
    etcdPeerPort,
    durable: durable ?? true,
    extraFlags: extraFlags ?? [],
  };
};

const writeTokens = async (dataDir: string, tokenFile: string): Promise<string> => {
  const token = await ensureToken(join(dataDir, 'pki', 'admin.token'));
  await writeFile(tokenFile, `${token},admin,${uidOf(token)},"system:masters"\n`);
  await chmod(tokenFile, 0o600);
  return token;
};

/** The same for the same token. */
const uidOf = (token: string): string => {
  const digits = createHash('sha256').update(token).digest('hex');
  return [
    digits.slice(0, 8),
    digits.slice(8, 12),
    `4${digits.slice(13, 16)}`,
    `8${digits.slice(17, 20)}`,
    digits.slice(20, 32),
  ].join('-');
};

/** Ready means: the health endpoint reports it, and the default namespace exists. */
const untilReady = async (access: Access, daemons: readonly Daemon[]): Promise<void> => {
  const dispatcher = new Agent({ connect: { ca: access.caPem } });
  const answers = async (path: string): Promise<boolean> => {
    const headers = { authorization: `Bearer ${access.token}` };
    const response = await request(access.url + path, { dispatcher, headers }).catch(() => undefined);
    await response?.body.dump();
    return response?.statusCode === 200;
  };
  const deadline = Date.now() + readyMs;
  try {
    while (!((await answers('/readyz')) && (await answers('/api/v1/namespaces/default')))) {
      for (const daemon of daemons) await daemon.assertRunning();
      if (Date.now() > deadline) throw new Unavailable(`kube-apiserver was not ready after ${readyMs / 1000} s`);
      await sleep(100);
    }
  } finally {
    await dispatcher.close();
  }
};

/** With etcd's HTTP gateway: reads the current revision, then compacts to it. */
const compactEtcd = async ({ files, etcdPort }: ControlPlaneLayout): Promise<void> => {
  const [ca, cert, key] = await Promise.all(
    [files.ca, files.clientCertificate, files.clientKey].map((file) => readFile(file, 'utf8')),
  );
  const dispatcher = new Agent({ connect: { ca, cert, key } });
  const call = async (path: string, body: object): Promise<{ readonly header?: { readonly revision?: string } }> => {
    const url = `https://127.0.0.1:${etcdPort}/v3/kv/${path}`;
    const response = await request(url, { dispatcher, method: 'POST', body: JSON.stringify(body) });
    if (response.statusCode !== 200) throw new Unavailable(`etcd ${path}: ${await response.body.text()}`);
    return (await response.body.json()) as { readonly header?: { readonly revision?: string } };
  };
  try {
    const current = await call('range', { key: Buffer.from('/').toString('base64') });
    await call('compaction', { revision: current.header?.revision, physical: true });
  } finally {
    await dispatcher.close();
  }
};
