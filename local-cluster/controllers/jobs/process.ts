// Container processes that outlive the cluster: each runs under a small shell that records its start and its end, so that a
// restarted cluster can read them. The state is a directory per process; nothing is kept in memory.
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
  /** Requested, and not observed as running yet. */
  | { readonly kind: 'starting'; readonly since: Date }
  | { readonly kind: 'running'; readonly pid: number; readonly startedAt: Date }
  | { readonly kind: 'ended'; readonly exitCode: number; readonly startedAt: Date; readonly finishedAt: Date }
  /** It ran and has disappeared without recording its end: killed together with its shell, or lost in a reboot. */
  | { readonly kind: 'vanished'; readonly startedAt: Date };

/**
 * `claim` ensures that only one process ever runs for a directory, also when a restarted cluster starts it a second time before the first
 * one has recorded its start. The start time stored with the process ID distinguishes a process from a later one with the same ID.
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

/** Milliseconds within which a claimed process must record its start before it counts as lost. */
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
  // Checked before the exit file is read: a process that ends in between has written it.
  const isAlive = pid !== undefined;
  const finishedAt = await timeOf(join(dir, 'exit'));
  if (finishedAt !== undefined) {
    const exitCode = Number.parseInt(await readFile(join(dir, 'exit'), 'utf8'), 10);
    return { kind: 'ended', exitCode, startedAt, finishedAt };
  }
  return isAlive ? { kind: 'running', pid, startedAt } : { kind: 'vanished', startedAt };
};

/** Sends a signal to the process and its children. Does nothing if it has ended. */
export const signalProcess = async (dir: string, signal: 'SIGTERM' | 'SIGKILL'): Promise<void> => {
  const pid = await pidOf(dir);
  if (pid === undefined) return;
  try {
    process.kill(-pid, signal);
  } catch {
    // It ended between the check and the signal.
  }
};

/** The ID of the process recorded in `dir`, if that very process is still running. */
const pidOf = async (dir: string): Promise<number | undefined> => {
  const [number = '', identity = ''] = (await readFile(join(dir, 'started'), 'utf8').catch(() => '')).split('\n');
  const pid = Number.parseInt(number, 10);
  if (!Number.isInteger(pid)) return undefined;
  return (await identityOf(pid)) === identity.trim() ? pid : undefined;
};

const run = promisify(execFile);

/** Distinguishes a process from a later one with the same ID; `undefined` when it does not run. */
export const identityOf = async (pid: number): Promise<string | undefined> => {
  if (!existsSync('/proc/self/stat')) {
    return run('ps', ['-o', 'lstart=', '-p', String(pid)]).then(
      ({ stdout }) => stdout.trim(),
      () => undefined,
    );
  }
  const line = await readFile(`/proc/${pid}/stat`, 'utf8').catch(() => '');
  // The fields after the command's name start with the third; a zombie has ended.
  const fields = line.slice(line.lastIndexOf(')') + 2).split(' ');
  return fields[0] === 'Z' ? undefined : fields[19];
};

const timeOf = (path: string): Promise<Date | undefined> =>
  stat(path).then(
    ({ mtime }) => mtime,
    () => undefined,
  );
