// `npm start`: the local cluster until it is told to end.
import { clusterLogOf, startCluster } from '#infra/local/cluster.ts';
import { HostConfig, parseStartOptions, toEnvironment, usage } from '#infra/local/options.ts';
import { complaintOf, watchStart } from '#infra/local/start-trouble.ts';
import { loadConfig } from '#shared/runtime/config.ts';
import { redacted } from '#shared/runtime/redact.ts';

const say = (text: string): void => void process.stderr.write(`${text}\n`);

const untilSignal = (): Promise<string> =>
  new Promise((resolve) => {
    for (const signal of ['SIGTERM', 'SIGINT'] as const) process.on(signal, () => resolve(signal));
  });

const main = async (): Promise<number> => {
  const options = parseStartOptions(process.argv.slice(2));
  if (options.help) {
    process.stdout.write(usage);
    return 0;
  }
  const ended = untilSignal();
  const environment = toEnvironment(loadConfig(HostConfig));
  say(`starting a local cluster on ${options.dataDir}`);
  const unwatch = watchStart(clusterLogOf(options.dataDir), say);
  const first = await Promise.race([startCluster({ ...options, environment }), ended]).finally(unwatch);
  if (typeof first === 'string') {
    say(`${first}: ended before everything answered`);
    return 130;
  }
  const cluster = first;
  process.stdout.write(`ready kubeconfig=${cluster.kubeconfigPath}\n`);
  say(
    `log: ${cluster.logFile}\ntry: kubectl --kubeconfig ${cluster.kubeconfigPath} get storageclasses,virtualmachineimages -A`,
  );
  const { objectStore } = cluster;
  say(
    `object store: ${objectStore.url} access key ${objectStore.accessKeyId}, secret ${redacted} (in ${objectStore.credentialsFile})`,
  );
  say(`${await ended}: stopping`);
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
