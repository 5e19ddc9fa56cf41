// Starts the embedded API server as a separate process. Called by the kill test and by benchmarks.
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import type { ApiServerOptions } from '#local-cluster/api-server/server.ts';

/** Access to a server as administrator. */
export interface Access {
  readonly url: string;
  readonly token: string;
  readonly caPem: string;
}

export interface ServerProcess {
  readonly pid: number;
  /** Rejects with the output of the process if it exits before it answers. */
  readonly ready: Promise<Access>;
  readonly isAlive: () => boolean;
  /** SIGKILL, at once; resolves when the process is gone. */
  readonly kill: () => Promise<void>;
}

export interface ServerProcessOptions extends Pick<ApiServerOptions, 'dataDir' | 'historyLimit'> {
  /** Directory of compiled code, which makes the next start faster. */
  readonly codeCache?: string;
}

const script = fileURLToPath(new URL('embedded.ts', import.meta.url));

export const startServerProcess = ({ codeCache, ...options }: ServerProcessOptions): ServerProcess => {
  const child = spawn(process.execPath, [script, JSON.stringify(options)], {
    stdio: ['pipe', 'pipe', 'pipe'],
    env: { ...process.env, ...(codeCache === undefined ? {} : { NODE_COMPILE_CACHE: codeCache }) },
  });
  const gone = once(child, 'exit');
  const ready = firstLine(child);
  // A test that kills a starting process does not await it.
  ready.catch(() => undefined);
  return {
    pid: child.pid ?? 0,
    ready,
    isAlive: () => child.exitCode === null && child.signalCode === null,
    kill: async () => {
      child.kill('SIGKILL');
      await gone;
    },
  };
};

const firstLine = async (child: ChildProcess): Promise<Access> => {
  const errors: string[] = [];
  child.stderr?.on('data', (text: Buffer) => errors.push(text.toString()));
  for await (const line of createInterface({ input: child.stdout! })) return JSON.parse(line) as Access;
  throw new Error(`the API server ended before it answered: ${errors.join('').slice(-2000)}`);
};
