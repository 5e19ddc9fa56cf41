// The transfer function and what stands around an upload, as processes that a test may kill; and a line slow enough to be cut.
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

export interface TransferProcess {
  readonly url: string;
  readonly pid: number;
  readonly kill: (signal: 'SIGKILL' | 'SIGTERM') => Promise<void>;
}

/** `functions/transfer` as a pod has it. `PORT`: that of one before. */
export const startTransferProcess = async (
  kubeconfig: string,
  environment: Readonly<Record<string, string>> = {},
): Promise<TransferProcess> => {
  const port = environment['PORT'] ?? String((await freePorts(1))[0]);
  const child = spawn(process.execPath, ['functions/transfer/index.ts'], {
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
  /** Bytes that went to the server so far. */
  readonly sent: () => number;
  /** Bytes that came from it. */
  readonly taken: () => number;
  readonly close: () => Promise<void>;
}

/** Passes `bytesPerSecond` each way to wherever `target` is at that moment; back-pressure and cuts go through. */
export const startSlowLine = async (target: () => string, bytesPerSecond: number): Promise<SlowLine> => {
  const passed = { sent: 0, taken: 0 };
  const open = new Set<Socket>();
  const slowly = (way: keyof typeof passed): Transform =>
    new Transform({
      highWaterMark: 64 * 1024,
      transform: (chunk: Buffer, _encoding, done) => {
        passed[way] += chunk.length;
        setTimeout(() => done(undefined, chunk), (1000 * chunk.length) / bytesPerSecond);
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
    // What is on its way still arrives where one ends well, and does not where one is killed.
    pipeline(client, slowly('sent'), server, () => undefined);
    pipeline(server, slowly('taken'), client, () => undefined);
  };
  const listener: Server = createServer({ allowHalfOpen: true }, connectThrough);
  await new Promise<void>((resolve) => listener.listen(0, '127.0.0.1', resolve));
  return {
    url: `http://127.0.0.1:${(listener.address() as AddressInfo).port}`,
    sent: () => passed.sent,
    taken: () => passed.taken,
    close: () =>
      new Promise((resolve) => {
        for (const socket of open) socket.destroy();
        listener.close(() => resolve());
      }),
  };
};

/** Process numbers of the workers in pods of a local cluster, without the shell around each. */
export const workerPids = async (dataDir: string): Promise<readonly number[]> => {
  const found: number[] = [];
  for (const pod of await readdir(join(dataDir, 'pods')).catch(() => [])) {
    const state = await lookAtProcess(join(dataDir, 'pods', pod, 'containers', 'transfer'));
    if (state.kind !== 'running') continue;
    const shell = state.pid;
    const children = await readFile(`/proc/${shell}/task/${shell}/children`, 'utf8').catch(() => '');
    found.push(...children.trim().split(' ').filter(Boolean).map(Number));
  }
  return found;
};

/** Bytes that each worker has written so far, by its process number. */
export const writtenByWorkers = async (dataDir: string): Promise<ReadonlyMap<number, number>> => {
  const written = new Map<number, number>();
  for (const pid of await workerPids(dataDir)) {
    const io = await readFile(`/proc/${pid}/io`, 'utf8').catch(() => '');
    written.set(pid, Number(/^wchar: (\d+)$/m.exec(io)?.[1] ?? 0));
  }
  return written;
};

/** Of those, whether it was still there. */
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

/** As a node that dies takes its pods along. Waits until there is one. */
export const killWorker = async (dataDir: string): Promise<void> => {
  for (let attempt = 0; attempt < 600; attempt += 1) {
    if (killWorkers(await workerPids(dataDir))) return;
    await sleep(100);
  }
  throw new Error('no worker was there to be killed');
};

/** Most memory that a process has had, in bytes. */
export const peakMemoryOf = async (pid: number): Promise<number> => {
  const status = await readFile(`/proc/${pid}/status`, 'utf8');
  return Number(/^VmHWM:\s+(\d+) kB/m.exec(status)?.[1] ?? Number.NaN) * 1024;
};
