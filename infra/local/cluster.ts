// The local cluster: API server, controllers, eventing and every function in one process. Called by main.ts, the demo and flow tests.
import { join, resolve } from 'node:path';
import { type LocalConsole, startAdmission, startLocalConsole, startLocalTransfer } from './servers.ts';
import { createAccounts } from '#infra/local/accounts.ts';
import type { Audit } from '#local-cluster/api-server/handlers/call.ts';
import { type ApiServerKind, startApiServer, stopLeftoverApiServer } from '#local-cluster/api.ts';
import type { Report } from '#local-cluster/controllers/controller.ts';
import { snapshotCrds } from '#local-cluster/controllers/snapshots/crds.ts';
import { type Controllers, logFileOf, startControllers } from '#local-cluster/controllers/start.ts';
import { operatorCrds, readAccess, readCrds, readEventing, repositoryDir, systemNamespace } from './manifests.ts';
import { ensureClasses } from '#local-cluster/controllers/volumes/classes.ts';
import { type Eventing, type StartEventing, brokerUrl, startEventing } from '#infra/local/eventing.ts';
import { type Functions, createFunctions, functionAccounts, functionSettings } from '#infra/local/functions.ts';
import { applyObjects, installCrds } from '#local-cluster/install.ts';
import { openLogFile } from '#local-cluster/log-file.ts';
import { lockDataDir } from '#local-cluster/lock.ts';
import type { BackingFiles } from '#local-cluster/longhorn/files.ts';
import { longhornCrds } from '#local-cluster/longhorn/crds.ts';
import {
  type LocalLonghorn,
  ensureLonghornObjects,
  openLonghornFiles,
  startLonghorn,
  unpackImage,
} from '#local-cluster/longhorn/local.ts';
import { type LocalObjectStore, startLocalObjectStore } from '#local-cluster/object-store/local.ts';
import { type Undo, createUndo } from '#local-cluster/undo.ts';
import { choosePorts } from '#infra/local/ports.ts';
import type { KubeClient } from '#shared/clients/kube/client.ts';
import { parseConfig } from '#shared/runtime/config.ts';
import { type LogLevel, type Logger, createLogger } from '#shared/runtime/log.ts';
import { startServer } from '#shared/runtime/serve.ts';
import { z } from 'zod';

/** Local mirrors and test servers listen on loopback. */
const loopback = '127.0.0.0/8,::1/128';

export interface ClusterOptions {
  /** Stores everything; the same directory restores the same cluster. */
  readonly dataDir: string;
  /** Of the API server. Default: a free one, the same at each start. */
  readonly port?: number | undefined;
  readonly apiServer: ApiServerKind;
  /** Seconds between ticks. Default: one minute. */
  readonly tickSeconds?: number | undefined;
  /** Of this process: `PATH` for transfers, and the directory of a real API server. */
  readonly environment: Readonly<Record<string, string | undefined>>;
  /** Overrides of the functions' environment. */
  readonly functionEnvironment?: Readonly<Record<string, string>>;
  /** Factor for the back-off of Jobs. Default: 1. */
  readonly backOffFactor?: number;
  readonly logLevel?: LogLevel;
  /** Delivers events to the functions. Default: the forwarder and broker of this process. */
  readonly startEventing?: StartEventing;
  /** Called for each access of an account at the embedded API server. */
  readonly audit?: Audit | undefined;
  /** Whether it simulates Longhorn. Default: true. */
  readonly longhorn?: boolean | undefined;
}

export interface Cluster {
  readonly kube: KubeClient;
  readonly kubeconfigPath: string;
  readonly controllers: Controllers;
  readonly eventing: Eventing;
  readonly objectStore: LocalObjectStore;
  readonly longhorn?: LocalLonghorn | undefined;
  /** URL for uploads and downloads. */
  readonly transferUrl: string;
  /** URL for Prometheus. */
  readonly metricsUrl: string;
  /** The catalogue for browsers. */
  readonly console: LocalConsole;
  /** Path of the log. */
  readonly logFile: string;
  /** Stops everything in order; running transfers are stopped and restarted at the next start. */
  readonly stop: () => Promise<void>;
}

/** Path of the log of a cluster with this directory. */
export const clusterLogOf = (dataDir: string): string => join(dataDir, 'logs', 'cluster.log');

/**
 * Resolves when everything answers. Throws Conflict if another cluster uses the directory, and the reason of `signal` if that fires first;
 * everything started by then is stopped.
 */
export const startCluster = async (options: ClusterOptions, signal?: AbortSignal): Promise<Cluster> => {
  const undo = createUndo();
  const started = start({ ...options, dataDir: resolve(options.dataDir) }, undo);
  try {
    return await (signal === undefined ? started : Promise.race([started, untilAborted(signal)]));
  } catch (error) {
    await undo.all();
    // Operations in progress may have started more; without the stopped parts they soon fail.
    await started.catch(() => undefined);
    await undo.all();
    throw error;
  }
};

const untilAborted = (signal: AbortSignal): Promise<never> =>
  new Promise((_, reject) => signal.addEventListener('abort', () => reject(signal.reason), { once: true }));

const start = async (options: ClusterOptions, undo: Undo): Promise<Cluster> => {
  const { dataDir } = options;
  undo.add(await lockDataDir(dataDir));
  const logFile = clusterLogOf(dataDir);
  const log = await openLog(logFile, options.logLevel ?? 'info', undo);
  // Before ports are chosen: a leftover server would occupy the port in users' kubeconfigs.
  await stopLeftoverApiServer(dataDir);
  const ports = await choosePorts(dataDir, options.port === undefined ? {} : { api: options.port });
  const apiServer = await startApiServer(options.apiServer, {
    ...options,
    port: ports.api,
    containerLog: (podUid, container) => logFileOf(dataDir, podUid, container),
  });
  undo.add(apiServer.close);
  const kube = await apiServer.connect(apiServer.kubeconfigPath);

  const hasLonghorn = options.longhorn ?? true;
  await installObjects(kube, hasLonghorn);
  const kubeconfigs = await createAccounts(kube, [...functionAccounts, 'sources'], {
    kubeconfigPath: apiServer.kubeconfigPath,
    namespace: systemNamespace,
    dir: join(dataDir, 'accounts'),
  });
  const manifests = await readEventing();
  const objectStore = await startLocalObjectStore({ kube, dataDir, port: ports.objectStore, log });
  undo.add(objectStore.close);
  const functions = await createFunctions({
    connect: (account) => apiServer.connect(kubeconfigs[account]),
    log,
    config: parseConfig(z.object(functionSettings), {
      K_SINK: brokerUrl(manifests, ports.broker),
      ALLOWED_ADDRESSES: loopback,
      OWN_CERTIFICATE: 'false',
      // Who has it tick at another pace wants each tick to look at everything.
      ...(options.tickSeconds === undefined ? {} : { SWEEP_SECONDS: '0' }),
      ...objectStore.environment,
      TRANSFER_URL: `http://127.0.0.1:${ports.transfer}`,
      PUBLIC_URL: `http://127.0.0.1:${ports.transfer}`,
      LONGHORN_URL: `http://127.0.0.1:${ports.longhorn}`,
      ...transferCommand(options.environment),
      ...options.functionEnvironment,
    }),
  });
  objectStore.notify((body) => notifyOf(functions, log, body));
  await startAdmission(kube, functions, { dataDir, port: ports.admission, log, undo, hasLonghorn });
  const files = await openLonghornFiles(dataDir);
  const controllers = await startAllControllers(options, { kube, functions, log, files });
  undo.add(() => controllers.stop());
  const { directory } = controllers;
  const report = reportTo(log);
  const longhorn = hasLonghorn
    ? await startLonghorn({ kube, report, directory, files, dataDir, port: ports.longhorn, log })
    : undefined;
  if (longhorn !== undefined) undo.add(longhorn.stop);
  const eventing = await (options.startEventing ?? startEventing)({
    ...options,
    kubeconfigs: { admin: apiServer.kubeconfigPath, sources: kubeconfigs.sources },
    kube: await apiServer.connect(kubeconfigs.sources),
    manifests,
    log,
    port: ports.broker,
    subscribers: functions.subscribers,
  });
  const transfer = await startLocalTransfer({ kube, exchange: functions.exchange, dataDir, ports, log });
  undo.add(transfer.close);
  const metrics = await startServer({ app: functions.metrics, port: ports.metrics, log, drainMs: 1_000 });
  undo.add(() => metrics.close());
  const console = await startLocalConsole({ apiServer, port: ports.console, log });
  undo.add(console.close);
  undo.add(functions.idle);
  undo.add(eventing.stop);
  // Changes while this cluster was down have caused no events.
  eventing.tick();
  const { kubeconfigPath } = apiServer;
  return {
    kube,
    kubeconfigPath,
    controllers,
    eventing,
    objectStore,
    longhorn,
    transferUrl: transfer.url,
    metricsUrl: `${metrics.url}/metrics`,
    console,
    logFile,
    stop: undo.all,
  };
};

/** Sends a bucket notification to import-object, like an object store. The tick handles lost ones. */
const notifyOf = (functions: Functions, log: Logger, body: object): void => {
  const headers = { 'content-type': 'application/json' };
  const request = new Request('http://import-object/', { method: 'POST', headers, body: JSON.stringify(body) });
  functions.notifyOfObject(request).catch((error: unknown) => log.warn('notification failed', { error }));
};

const openLog = async (file: string, level: LogLevel, undo: Undo): Promise<Logger> => {
  const { write, close } = await openLogFile(file);
  undo.add(close);
  return createLogger({ level, write });
};

const installObjects = async (kube: KubeClient, hasLonghorn: boolean): Promise<void> => {
  const products = [...snapshotCrds, ...operatorCrds, ...(hasLonghorn ? longhornCrds : [])];
  await installCrds(kube, [...products, ...(await readCrds())]);
  await ensureClasses(kube);
  if (hasLonghorn) await ensureLonghornObjects(kube);
  await applyObjects(kube, await readAccess());
};

const reportTo = (log: Logger): Report => {
  const part = log.with({ part: 'controllers' });
  return (message, fields) => part.warn(message, fields);
};

interface ControllerParts {
  readonly kube: KubeClient;
  readonly functions: Functions;
  readonly log: Logger;
  readonly files: BackingFiles;
}

/** A bundle of transfer-job starts in a third of the time of its sources: set if there is one. */
const transferCommand = ({ BULLION_TRANSFER_JOB: bundle }: ClusterOptions['environment']): Record<string, string> =>
  bundle === undefined ? {} : { TRANSFER_COMMAND: `node ${bundle}` };

/** For machines where KVM is slower than emulation, as nested ones are where the guest is only a boot sector. */
const accelerator = ({ BULLION_ACCELERATOR: value }: ClusterOptions['environment']): Record<string, string> =>
  value === undefined ? {} : { BULLION_ACCELERATOR: value };

const startAllControllers = (
  { dataDir, environment, backOffFactor }: ClusterOptions,
  { kube, functions, log, files }: ControllerParts,
): Promise<Controllers> =>
  startControllers({
    kube,
    dataDir,
    report: reportTo(log),
    unpack: (directory) => (storageClass) => unpackImage({ kube, files, directory }, storageClass),
    ...(backOffFactor === undefined ? {} : { backOffFactor }),
    host: {
      images: Object.fromEntries(
        Object.entries(functions.jobImages).map(([image, name]) => [
          image,
          ['node', join('functions', name, 'index.ts')],
        ]),
      ),
      nodePath: process.execPath,
      workingDir: repositoryDir,
      env: {
        PATH: environment['PATH'] ?? '/usr/local/bin:/usr/bin:/bin',
        // Compiled code of transfer-job: otherwise half of the duration of a small import is compilation, twice. The cache of this process,
        // shared by every cluster, if there is one.
        NODE_COMPILE_CACHE: resolve(environment['NODE_COMPILE_CACHE'] ?? join(dataDir, 'code')),
        ...accelerator(environment),
      },
    },
  });
