// Everybody who takes part in an upload or a download, each of whom a test may kill: client, function, Job, cluster.
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
  /** Exit code, what a script reads of it, and what a person does. */
  readonly over: Promise<{ readonly code: number | null; readonly out: string; readonly said: string }>;
  readonly kill: (signal: 'SIGKILL' | 'SIGINT') => Client['over'];
  /** What it has said so far. */
  readonly said: () => string;
}

export const participants = ['client', 'function', 'job', 'cluster'] as const;
export type Participant = (typeof participants)[number];

export interface Stage {
  readonly cluster: ExchangeCluster;
  /** Bytes go over it, slowly enough to be cut. */
  readonly line: SlowLine;
  readonly random: Random;
  readonly bullion: (...args: readonly string[]) => Client;
  /** Everybody but clients, who are the test's. `cluster`: half of the times with whatever works in it, as a node that loses its power. */
  readonly kill: (who: Exclude<Participant, 'client'>) => Promise<void>;
  /** Until so many bytes more went one way, or nobody waits for them any more. */
  readonly untilMore: (way: 'sent' | 'taken', bytes: number, signal?: AbortSignal) => Promise<void>;
  /**
   * Until so many bytes more came as far as a worker, or nobody waits for them any more: what is before it may hold some megabytes. One that is
   * killed before costs nobody anything, another takes its place.
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

/** Killed, or asked to end as with Ctrl-C: then it says how to go on. */
export const endClient = async (client: Client, random: Random): Promise<void> => {
  const signal = random.pick(['SIGKILL', 'SIGINT'] as const);
  const { code, said } = await client.kill(signal);
  const isReported = /same command again/.test(said);
  const isAsExpected = signal === 'SIGKILL' ? code === null : code !== 0 && isReported;
  if (!isAsExpected) throw new Error(`after ${signal} the client ended with ${code}: ${said}`);
};

/** `seed` decides when and in which order they die: failures name it. */
export const startStage = async (bytesPerSecond: number, seed: number): Promise<Stage> => {
  let target = '';
  const line = await startSlowLine(() => target, bytesPerSecond);
  // Clients ask the cluster where to send.
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
