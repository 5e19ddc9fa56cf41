// The participants of an upload or a download, which a test may kill: client, function, Job, cluster.
import { type ChildProcess, spawn } from 'node:child_process';
import { setTimeout as sleep } from 'node:timers/promises';
import { type ExchangeCluster, startExchangeCluster } from '#test/support/exchange.ts';
import { type Random, createRandom } from '#test/support/random.ts';
import {
  type SlowLine,
  killWorker,
  killWorkers,
  startSlowLine,
  startTransferProcess,
  workerPids,
  writtenByWorkers,
} from '#test/support/transfer-process.ts';

/** `bullion` as a process. */
export interface Client {
  /** Exit code, output for scripts, and output for users. */
  readonly over: Promise<{ readonly code: number | null; readonly out: string; readonly said: string }>;
  readonly kill: (signal: 'SIGKILL' | 'SIGINT') => Client['over'];
  /** Its output so far. */
  readonly said: () => string;
}

export const participants = ['client', 'function', 'job', 'cluster'] as const;
export type Participant = (typeof participants)[number];

export interface Stage {
  readonly cluster: ExchangeCluster;
  /** The connection for all bytes, slow enough to be interrupted. */
  readonly line: SlowLine;
  readonly random: Random;
  readonly bullion: (...args: readonly string[]) => Client;
  /** All except clients, which the test controls. `cluster`: in half of the cases together with its workers, like a node that loses power. */
  readonly kill: (who: Exclude<Participant, 'client'>) => Promise<void>;
  /** Until this many more bytes were transferred in one direction, or the signal fires. */
  readonly untilMore: (way: 'sent' | 'taken', bytes: number, signal?: AbortSignal) => Promise<void>;
  /**
   * Until this many more bytes reached a worker, or the signal fires: parts before it may buffer some megabytes. If one is killed before,
   * nothing is lost, and another takes its place.
   */
  readonly untilWritten: (bytes: number, signal?: AbortSignal) => Promise<void>;
  readonly close: () => Promise<void>;
}

const waitMs = 180_000;

const startClient = (args: readonly string[], clients: Set<ChildProcess>): Client => {
  const child = spawn(process.execPath, ['cli/main.ts', ...args], { stdio: ['ignore', 'pipe', 'pipe'] });
  clients.add(child);
  const text = { out: '', said: '' };
  child.stdout.on('data', (part: Buffer) => (text.out += part.toString()));
  child.stderr.on('data', (part: Buffer) => (text.said += part.toString()));
  const over = new Promise<Awaited<Client['over']>>((resolve) =>
    child.once('close', (code) => {
      clients.delete(child);
      resolve({ code, ...text });
    }),
  );
  return {
    over,
    kill: (signal) => {
      child.kill(signal);
      return over;
    },
    said: () => text.said,
  };
};

/** Killed, or terminated as with Ctrl-C: then it prints how to resume. */
export const endClient = async (client: Client, random: Random): Promise<void> => {
  const signal = random.pick(['SIGKILL', 'SIGINT'] as const);
  const { code, said } = await client.kill(signal);
  const isReported = /same command again/.test(said);
  const isAsExpected = signal === 'SIGKILL' ? code === null : code !== 0 && isReported;
  if (!isAsExpected) throw new Error(`after ${signal} the client ended with ${code}: ${said}`);
};

/** `seed` determines the times and the order of kills: failures report it. */
export const startStage = async (bytesPerSecond: number, seed: number): Promise<Stage> => {
  let target = '';
  const line = await startSlowLine(() => target, bytesPerSecond);
  // Clients read the URL for uploads from the cluster.
  const cluster = await startExchangeCluster({ functionEnvironment: { PUBLIC_URL: line.url } });
  let fn = await startTransferProcess(cluster.kubeconfigPath);
  target = fn.url;
  const clients = new Set<ChildProcess>();
  const random = createRandom(seed);
  const restartCluster = async (): Promise<void> => {
    const workers = random.chance(0.5) ? await workerPids(cluster.dataDir) : [];
    killWorkers(workers);
    await cluster.restart();
  };
  const restartFunction = async (): Promise<void> => {
    await fn.kill('SIGKILL');
    fn = await startTransferProcess(cluster.kubeconfigPath, { PORT: new URL(fn.url).port });
  };
  const deaths = { function: restartFunction, job: () => killWorker(cluster.dataDir), cluster: restartCluster };
  return {
    cluster,
    line,
    random,
    bullion: (...args) => startClient([...args, '--kubeconfig', cluster.kubeconfigPath], clients),
    kill: (who) => deaths[who](),
    untilMore: async (way, bytes, signal) => {
      const enough = line[way]() + bytes;
      const isSo = () => line[way]() >= enough || signal?.aborted === true;
      for (const deadline = Date.now() + waitMs; !isSo(); await sleep(20)) {
        if (Date.now() > deadline) throw new Error(`only ${line[way]()} of ${enough} bytes were ${way}; seed ${seed}`);
      }
    },
    untilWritten: async (bytes, signal) => {
      const before = await writtenByWorkers(cluster.dataDir);
      const isSo = async (): Promise<boolean> =>
        signal?.aborted === true ||
        [...(await writtenByWorkers(cluster.dataDir))].some(([pid, now]) => now - (before.get(pid) ?? 0) > bytes);
      for (const deadline = Date.now() + waitMs; !(await isSo()); await sleep(50)) {
        if (Date.now() > deadline) throw new Error(`no worker wrote ${bytes} bytes; seed ${seed}`);
      }
    },
    close: async () => {
      for (const client of clients) client.kill('SIGKILL');
      await fn.kill('SIGKILL');
      await line.close();
      await cluster.close();
    },
  };
};
