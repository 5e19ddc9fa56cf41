// `npm start`: runs the local cluster until it is stopped.
import { flushCompileCache } from 'node:module';
import { type Cluster, type ClusterOptions, clusterLogOf, startCluster } from '#infra/local/cluster.ts';
import { HostConfig, parseStartOptions, toEnvironment, usage } from '#infra/local/options.ts';
import { complaintOf, watchStart } from '#infra/local/start-trouble.ts';
import { loadConfig } from '#shared/runtime/config.ts';
import { redacted } from '#shared/runtime/redact.ts';

const say = (text: string): void => void process.stderr.write(`${text}\n`);

/** Fires with the name of the received signal. */
const createStopSignal = (): AbortSignal => {
  const stop = new AbortController();
  for (const name of ['SIGTERM', 'SIGINT'] as const) process.on(name, () => stop.abort(name));
  return stop.signal;
};

const startUnlessStopped = async (options: ClusterOptions, stop: AbortSignal): Promise<Cluster | undefined> => {
  try {
    return await startCluster(options, stop);
  } catch (error) {
    if (error === stop.reason) return undefined;
    throw error;
  }
};

const main = async (): Promise<number> => {
  const options = parseStartOptions(process.argv.slice(2));
  if (options.help) {
    process.stdout.write(usage);
    return 0;
  }
  const stop = createStopSignal();
  const ended = new Promise((resolve) => stop.addEventListener('abort', resolve, { once: true }));
  const environment = toEnvironment(loadConfig(HostConfig));
  say(`starting a local cluster on ${options.dataDir}`);
  const unwatch = watchStart(clusterLogOf(options.dataDir), say);
  const cluster = await startUnlessStopped({ ...options, environment }, stop).finally(unwatch);
  if (cluster === undefined) {
    say(`${stop.reason}: ended before everything answered`);
    return 130;
  }
  process.stdout.write(`ready kubeconfig=${cluster.kubeconfigPath}\n`);
  // Written now, because a cluster that is killed writes nothing at its end: this makes the next start faster.
  flushCompileCache();
  say(
    `log: ${cluster.logFile}\ntry: kubectl --kubeconfig ${cluster.kubeconfigPath} get storageclasses,virtualmachineimages -A`,
  );
  const { objectStore } = cluster;
  say(`upload: ${cluster.transferUrl}`);
  say(`metrics: ${cluster.metricsUrl}`);
  say(`console: ${cluster.console.loginUrl()} (logs in once, with the rights of the kubeconfig)`);
  say(
    `object store: ${objectStore.url} access key ${objectStore.accessKeyId}, secret ${redacted} (in ${objectStore.credentialsFile})`,
  );
  await ended;
  say(`${stop.reason}: stopping`);
  await cluster.stop();
  return 0;
};

try {
  process.exit(await main());
} catch (error) {
  const complaint = complaintOf(error);
  if (complaint === undefined) throw error;
  say(`cannot start: ${complaint}`);
  process.exit(1);
}
