// One child process of the real control plane: its log file, its pid file, its end. Called by server.ts.
import { execFile, spawn, type ChildProcess } from 'node:child_process';
import { mkdir, open, readFile, rm, writeFile } from 'node:fs/promises';
import { dirname } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { promisify } from 'node:util';
import { Unavailable } from '#shared/runtime/errors.ts';

const run = promisify(execFile);

/** Milliseconds a process has to end after SIGTERM before it gets SIGKILL. */
const stopMs = 10_000;

export interface DaemonSpec {
  readonly name: string;
  readonly command: string;
  readonly args: readonly string[];
  readonly logFile: string;
  readonly pidFile: string;
}

export interface Daemon {
  /** Throws Unavailable with the end of the log once the process has ended by itself. */
  readonly assertRunning: () => Promise<void>;
  /** SIGTERM, then SIGKILL; returns when the process is gone. */
  readonly stop: () => Promise<void>;
}

/** Starts the process; its output goes to the log file, begun anew. */
export const startDaemon = async (spec: DaemonSpec): Promise<Daemon> => {
  await mkdir(dirname(spec.logFile), { recursive: true });
  const log = await open(spec.logFile, 'w');
  const child = spawn(spec.command, spec.args, { stdio: ['ignore', log.fd, log.fd] });
  const ended = endOf(child);
  await log.close();
  if (child.pid !== undefined) await writeFile(spec.pidFile, String(child.pid));
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
  return `${spec.name} ended (${reason}); the end of ${spec.logFile} says:\n${lines}`;
};

/** Ends the process that a crashed run left behind, if there is one. */
export const stopLeftover = async (spec: DaemonSpec): Promise<void> => {
  const pid = Number(await readFile(spec.pidFile, 'utf8').catch(() => ''));
  if (!(pid > 1) || !(await isOurs(pid, spec))) return;
  process.kill(pid, 'SIGTERM');
  const deadline = Date.now() + stopMs;
  while (await isOurs(pid, spec)) {
    if (Date.now() > deadline) process.kill(pid, 'SIGKILL');
    await sleep(50);
  }
};

/** A pid can belong to somebody else by now: only a process with this very command line is ours. */
const isOurs = async (pid: number, spec: DaemonSpec): Promise<boolean> => {
  const listed = await run('ps', ['-ww', '-p', String(pid), '-o', 'args=']).catch(() => ({ stdout: '' }));
  return listed.stdout.startsWith(spec.command) && listed.stdout.includes(dirname(spec.pidFile));
};
