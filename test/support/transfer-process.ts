// The transfer function and the other participants of an upload, as processes that a test may kill; and a slow connection that can be
// interrupted.
import { spawn } from 'node:child_process';
import { readFile, readdir } from 'node:fs/promises';
import { type Server, type Socket, connect, createServer } from 'node:net';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { Transform, pipeline } from 'node:stream';
import { setTimeout as sleep } from 'node:timers/promises';
import { lookAtProcess } from '#local-cluster/controllers/jobs/process.ts';
import { freePorts } from '#local-cluster/free-ports.ts';
import { ensureBundles } from '#test/support/bundles.ts';

export interface TransferProcess {
  readonly url: string;
  readonly pid: number;
  readonly kill: (signal: 'SIGKILL' | 'SIGTERM') => Promise<void>;
}

/** `functions/transfer` as in a pod. `PORT`: that of its predecessor. */
export const startTransferProcess = async (
  kubeconfig: string,
  environment: Readonly<Record<string, string>> = {},
): Promise<TransferProcess> => {
  const port = environment['PORT'] ?? String((await freePorts(1))[0]);
  const { dir } = await ensureBundles('functions');
  const child = spawn(process.execPath, [join(dir, 'start.mjs'), 'transfer'], {
    env: {
      PATH: process.env['PATH'],
      NODE_COMPILE_CACHE: process.env['NODE_COMPILE_CACHE'],
      KUBECONFIG: kubeconfig,
      PORT: port,
      TRANSFER_URL: `http://127.0.0.1:${port}`,
      ...environment,
    },
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const ended = new Promise<void>((resolve) => child.once('exit', () => resolve()));
  const ready = new Promise<string>((resolve, reject) => {
    createInterface({ input: child.stdout }).on('line', (line) => {
      const { url } = JSON.parse(line) as { url?: string };
      if (url !== undefined) resolve(url);
    });
    void ended.then(() => reject(new Error('the transfer function ended')));
  });
  return {
    url: await ready,
    pid: child.pid ?? 0,
    kill: async (signal) => {
      child.kill(signal);
      await ended;
    },
  };
};

export interface SlowLine {
  readonly url: string;
  /** Bytes sent to the server so far. */
  readonly sent: () => number;
  /** Bytes received from it so far. */
  readonly taken: () => number;
  /** Whether it is slow. What is not to be interrupted any more needs no time. */
  readonly limit: (isOn: boolean) => void;
  readonly close: () => Promise<void>;
}

/** Forwards `bytesPerSecond` in each direction to the current `target`; back-pressure and interruptions are passed on. */
export const startSlowLine = async (target: () => string, bytesPerSecond: number): Promise<SlowLine> => {
  const passed = { sent: 0, taken: 0 };
  let isLimited = true;
  const open = new Set<Socket>();
  const slowly = (way: keyof typeof passed): Transform =>
    new Transform({
      highWaterMark: 64 * 1024,
      transform: (chunk: Buffer, _encoding, done) => {
        passed[way] += chunk.length;
        if (isLimited) setTimeout(() => done(undefined, chunk), (1000 * chunk.length) / bytesPerSecond);
        else done(undefined, chunk);
      },
    });
  const connectThrough = (client: Socket): void => {
    const { hostname, port } = new URL(target());
    const server = connect(Number(port), hostname);
    for (const [one, other] of [
      [client, server],
      [server, client],
    ] as const) {
      open.add(one);
      one.on('error', () => other.destroy());
      one.on('close', () => open.delete(one));
    }
    // Bytes in transit arrive if the connection ends regularly, but not if it is killed.
    pipeline(client, slowly('sent'), server, () => undefined);
    pipeline(server, slowly('taken'), client, () => undefined);
  };
  const listener: Server = createServer({ allowHalfOpen: true }, connectThrough);
  await new Promise<void>((resolve) => listener.listen(0, '127.0.0.1', resolve));
  return {
    url: `http://127.0.0.1:${(listener.address() as AddressInfo).port}`,
    sent: () => passed.sent,
    taken: () => passed.taken,
    limit: (isOn) => void (isLimited = isOn),
    close: () =>
      new Promise((resolve) => {
        for (const socket of open) socket.destroy();
        listener.close(() => resolve());
      }),
  };
};

/** Process IDs of the workers in pods of a local cluster, without their shells. */
export const workerPids = async (dataDir: string): Promise<readonly number[]> => {
  const found: number[] = [];
  for (const pod of await readdir(join(dataDir, 'pods')).catch(() => [])) {
    // It may be removed at this moment.
    const state = await lookAtProcess(join(dataDir, 'pods', pod, 'containers', 'transfer')).catch(() => undefined);
    if (state?.kind !== 'running') continue;
    const shell = state.pid;
    const children = await readFile(`/proc/${shell}/task/${shell}/children`, 'utf8').catch(() => '');
    found.push(...children.trim().split(' ').filter(Boolean).map(Number));
  }
  return found;
};

/** Bytes written by each worker so far, by its process ID. */
export const writtenByWorkers = async (dataDir: string): Promise<ReadonlyMap<number, number>> => {
  const written = new Map<number, number>();
  for (const pid of await workerPids(dataDir)) {
    const io = await readFile(`/proc/${pid}/io`, 'utf8').catch(() => '');
    written.set(pid, Number(/^wchar: (\d+)$/m.exec(io)?.[1] ?? 0));
  }
  return written;
};

/** Whether any of them still existed. */
export const killWorkers = (pids: readonly number[]): boolean =>
  pids
    .map((pid) => {
      try {
        return process.kill(pid, 'SIGKILL');
      } catch {
        return false;
      }
    })
    .includes(true);

/** Like a node that dies with its pods. Waits until there is one. */
export const killWorker = async (dataDir: string): Promise<void> => {
  for (let attempt = 0; attempt < 600; attempt += 1) {
    if (killWorkers(await workerPids(dataDir))) return;
    await sleep(100);
  }
  throw new Error('no worker was there to be killed');
};

/** Peak memory of a process, in bytes. */
export const peakMemoryOf = async (pid: number): Promise<number> => {
  const status = await readFile(`/proc/${pid}/status`, 'utf8');
  return Number(/^VmHWM:\s+(\d+) kB/m.exec(status)?.[1] ?? Number.NaN) * 1024;
};
