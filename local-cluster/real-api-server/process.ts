// One child process of the real control plane: its log file, its pid file, its termination. Called by server.ts.
import { spawn, type ChildProcess } from 'node:child_process';
import { mkdir, open, readFile, rm, writeFile } from 'node:fs/promises';
import { dirname } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { identityOf } from '#local-cluster/controllers/jobs/process.ts';
import { Unavailable } from '#shared/runtime/errors.ts';

/** Milliseconds between SIGTERM and SIGKILL. */
const stopMs = 10_000;

export interface DaemonSpec {
  readonly name: string;
  readonly command: string;
  readonly args: readonly string[];
  readonly logFile: string;
  readonly pidFile: string;
}

export interface Daemon {
  /** Throws Unavailable with the end of the log if the process has exited. */
  readonly assertRunning: () => Promise<void>;
  /** SIGTERM, then SIGKILL; returns when the process has exited. */
  readonly stop: () => Promise<void>;
}

/** Starts the process; its output goes to the log file, which is truncated. */
export const startDaemon = async (spec: DaemonSpec): Promise<Daemon> => {
  await mkdir(dirname(spec.logFile), { recursive: true });
  const log = await open(spec.logFile, 'w');
  const child = spawn(spec.command, spec.args, { stdio: ['ignore', log.fd, log.fd] });
  const ended = endOf(child);
  await log.close();
  if (child.pid !== undefined) {
    await writeFile(spec.pidFile, `${child.pid}\n${(await identityOf(child.pid)) ?? ''}\n`);
  }
  return {
    assertRunning: async () => {
      const reason = await Promise.race([ended, sleep(0, undefined)]);
      if (reason !== undefined) throw new Unavailable(await epitaph(spec, reason));
    },
    stop: async () => {
      child.kill('SIGTERM');
      const timer = setTimeout(() => child.kill('SIGKILL'), stopMs);
      await ended;
      clearTimeout(timer);
      await rm(spec.pidFile, { force: true });
    },
  };
};

const endOf = (child: ChildProcess): Promise<string> =>
  new Promise((resolve) => {
    child.once('error', (error) => resolve(error.message));
    child.once('exit', (code, signal) => resolve(signal === null ? `exit code ${code}` : `signal ${signal}`));
  });

const epitaph = async (spec: DaemonSpec, reason: string): Promise<string> => {
  const log = await readFile(spec.logFile, 'utf8').catch(() => '');
  const lines = log.trimEnd().split('\n').slice(-8).join('\n');
  return `${spec.name} exited (${reason}); the end of ${spec.logFile}:\n${lines}`;
};

/** Ends the process that a crashed run left behind, if there is one, whatever binary it was started from. */
export const stopLeftover = async (pidFile: string): Promise<void> => {
  const [number = '', identity = ''] = (await readFile(pidFile, 'utf8').catch(() => '')).split('\n');
  const pid = Number.parseInt(number, 10);
  // The process ID may have been reused by now.
  const isRunning = async (): Promise<boolean> => identity !== '' && (await identityOf(pid)) === identity;
  const deadline = Date.now() + stopMs;
  for (let signal: NodeJS.Signals = 'SIGTERM'; await isRunning(); signal = Date.now() > deadline ? 'SIGKILL' : signal) {
    send(pid, signal);
    await sleep(50);
  }
  await rm(pidFile, { force: true });
};

/** The process may end just before. */
const send = (pid: number, signal: NodeJS.Signals): void => {
  try {
    process.kill(pid, signal);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error;
  }
};
