// The life of a node: one per data directory, taken down at every end of the process that uses it. Called by main.ts and test/cluster.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { realpath, rmdir } from 'node:fs/promises';
import { join } from 'node:path';
import { lockDataDir } from '#local-cluster/lock.ts';
import { cleanNode } from '#local-cluster/node/clean.ts';
import { type NodePaths, pathsOf } from '#local-cluster/node/layout.ts';
import type { Programs } from '#local-cluster/node/programs.ts';
import { type LocalNode, startNode } from '#local-cluster/node/start.ts';
import { Conflict } from '#shared/runtime/errors.ts';

interface RunOptions {
  readonly dataDir: string;
  readonly programs: Programs;
  readonly report: (line: string) => void;
}

/** Links and networks have fixed names: beside a node that runs, another one would take down what both have. */
const machineLock = '/run/bullion-node';

/** Throws Conflict while this machine, or the data directory, has a node. */
export const lockNode = async (dataDir: string, machine = machineLock): Promise<() => Promise<void>> => {
  const unlockMachine = await lockDataDir(machine).catch((error: unknown) => {
    if (error instanceof Conflict)
      throw new Conflict(
        'this machine already has a node of `npm run cluster` or `npm run test:cluster`: stop it first',
      );
    throw error;
  });
  try {
    const unlock = await lockDataDir(dataDir);
    return async () => {
      await unlock();
      await unlockMachine();
    };
  } catch (error) {
    await unlockMachine();
    throw error;
  }
};

/** Starts a node, and takes it down after `use`, whatever happens: an interruption aborts `signal`; after a death of this process a guard does it. */
export const withNode = async <T>(
  { dataDir, programs, report }: RunOptions,
  use: (node: LocalNode, signal: AbortSignal) => Promise<T>,
): Promise<T> => {
  const unlock = await lockNode(dataDir);
  const paths = pathsOf(await realpath(dataDir));
  const guard = startGuard(paths);
  const stopping = new AbortController();
  const ended = new AbortController();
  let supervising: Promise<void> | undefined;
  const stop = (signal: NodeJS.Signals): void => stopping.abort(new Error(`stopped by ${signal}`));
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, stop);
  try {
    const node = await startNode({ paths, programs, report, signal: stopping.signal });
    supervising = node.supervise(AbortSignal.any([stopping.signal, ended.signal]));
    return await use(node, stopping.signal);
  } finally {
    report('taking the node down');
    ended.abort();
    await supervising;
    await cleanNode(paths);
    await unlock();
    await rmdir(paths.dataDir);
    guard.kill('SIGTERM');
    for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.off(signal, stop);
  }
};

/** In a session of its own, so that Ctrl-C does not reach it; its input ends with this process. */
const startGuard = ({ dataDir }: NodePaths) => {
  const child = spawn(process.execPath, [join(import.meta.dirname, 'main.ts'), '--guard', '--data-dir', dataDir], {
    detached: true,
    stdio: ['pipe', 'ignore', 'ignore'],
  });
  child.unref();
  return child;
};

/** Waits for the end of the process that started it, then takes down what that left. */
export const guardNode = async (dataDir: string): Promise<void> => {
  process.stdin.resume();
  await once(process.stdin, 'end');
  await removeNode(dataDir);
};

/** Throws Conflict while the node is in use. */
export const removeNode = async (dataDir: string): Promise<void> => {
  const unlock = await lockNode(dataDir);
  const paths = pathsOf(await realpath(dataDir));
  await cleanNode(paths);
  await unlock();
  await rmdir(paths.dataDir);
};
