// Container processes that outlive the cluster: each runs under a small shell that writes down when it began and how it ended, so that a
// cluster that was killed finds out after its restart. State is a directory per process; nothing is kept in memory.
import { spawn } from 'node:child_process';
import { execFile } from 'node:child_process';
import { existsSync } from 'node:fs';
import { mkdir, readFile, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';

export interface ProcessSpec {
  readonly argv: readonly [string, ...string[]];
  readonly env: Readonly<Record<string, string>>;
  readonly cwd: string;
  readonly logFile: string;
}

export type ProcessState =
  | { readonly kind: 'absent' }
  /** Asked for, and not yet seen running. */
  | { readonly kind: 'starting'; readonly since: Date }
  | { readonly kind: 'running'; readonly pid: number; readonly startedAt: Date }
  | { readonly kind: 'ended'; readonly exitCode: number; readonly startedAt: Date; readonly finishedAt: Date }
  /** It ran and is gone without having told how it ended: killed together with its shell, or lost in a reboot. */
  | { readonly kind: 'vanished'; readonly startedAt: Date };

/**
 * `claim` makes sure that only one process ever runs for a directory, also when a restarted cluster starts it a second time before the first
 * one has written itself down. The identity beside the process number (its start time) tells a process from a later one of the same number.
 */
const shim = `
identity() {
  if [ -r "/proc/$1/stat" ]; then
    read -r line < "/proc/$1/stat"
    set -- \${line##*) }
    echo "\${20}"
  else
    ps -o lstart= -p "$1"
  fi
}
dir=$1 log=$2
shift 2
mkdir "$dir/claim" 2>/dev/null || exit 0
child=
trap '[ -n "$child" ] && kill -TERM "$child" 2>/dev/null' TERM INT HUP
printf '%s\\n%s\\n' "$$" "$(identity $$)" > "$dir/started.part"
mv "$dir/started.part" "$dir/started"
"$@" >> "$log" 2>&1 < /dev/null &
child=$!
code=0
while :; do
  wait "$child"
  code=$?
  kill -0 "$child" 2>/dev/null || break
done
echo "$code" > "$dir/exit.part"
mv "$dir/exit.part" "$dir/exit"
`;

/** Starts a process in `dir` unless one was started there before; `onExit` is a hint that the state changed. */
export const startProcess = async (dir: string, spec: ProcessSpec, onExit: () => void): Promise<void> => {
  await mkdir(dir, { recursive: true });
  const child = spawn('/bin/sh', ['-c', shim, 'container', dir, spec.logFile, ...spec.argv], {
    cwd: spec.cwd,
    env: { ...spec.env },
    detached: true,
    stdio: 'ignore',
  });
  child.once('exit', onExit);
  child.once('error', onExit);
  child.unref();
};

/** Milliseconds a claimed process has to write itself down before it counts as lost. */
const startMs = 10_000;

export const lookAtProcess = async (dir: string): Promise<ProcessState> => {
  const claimedAt = await timeOf(join(dir, 'claim'));
  if (claimedAt === undefined) return { kind: 'absent' };
  const startedAt = await timeOf(join(dir, 'started'));
  if (startedAt === undefined) {
    const isLost = Date.now() - claimedAt.getTime() > startMs;
    return isLost ? { kind: 'vanished', startedAt: claimedAt } : { kind: 'starting', since: claimedAt };
  }
  const pid = await pidOf(dir);
  // Asked before the exit file is read: a process that ends in between has written it.
  const isAlive = pid !== undefined;
  const finishedAt = await timeOf(join(dir, 'exit'));
  if (finishedAt !== undefined) {
    const exitCode = Number.parseInt(await readFile(join(dir, 'exit'), 'utf8'), 10);
    return { kind: 'ended', exitCode, startedAt, finishedAt };
  }
  return isAlive ? { kind: 'running', pid, startedAt } : { kind: 'vanished', startedAt };
};

/** Sends a signal to the process and everything it started. Gone already is fine. */
export const signalProcess = async (dir: string, signal: 'SIGTERM' | 'SIGKILL'): Promise<void> => {
  const pid = await pidOf(dir);
  if (pid === undefined) return;
  try {
    process.kill(-pid, signal);
  } catch {
    // It ended between the look and the signal.
  }
};

/** The number of the process written down in `dir`, if that very process still runs. */
const pidOf = async (dir: string): Promise<number | undefined> => {
  const [number = '', identity = ''] = (await readFile(join(dir, 'started'), 'utf8').catch(() => '')).split('\n');
  const pid = Number.parseInt(number, 10);
  if (!Number.isInteger(pid)) return undefined;
  return (await identityOf(pid)) === identity.trim() ? pid : undefined;
};

const run = promisify(execFile);

/** Tells a process from a later one of the same number; `undefined` when it does not run. */
export const identityOf = async (pid: number): Promise<string | undefined> => {
  if (!existsSync('/proc/self/stat')) {
    return run('ps', ['-o', 'lstart=', '-p', String(pid)]).then(
      ({ stdout }) => stdout.trim(),
      () => undefined,
    );
  }
  const line = await readFile(`/proc/${pid}/stat`, 'utf8').catch(() => '');
  // Behind the command's name come the fields from the third on; a zombie has ended.
  const fields = line.slice(line.lastIndexOf(')') + 2).split(' ');
  return fields[0] === 'Z' ? undefined : fields[19];
};

const timeOf = (path: string): Promise<Date | undefined> =>
  stat(path).then(
    ({ mtime }) => mtime,
    () => undefined,
  );
