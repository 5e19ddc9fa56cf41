// Runs a helper program to its end, within limits; it is killed when the transfer is cancelled.
import { spawn } from 'node:child_process';
import { z } from 'zod';
import { parseConfig, setting } from '#shared/runtime/config.ts';

/** Settings for helper programs. */
const { path } = parseConfig(
  z.object({
    path: setting(
      'PATH',
      'Search path for qemu-img, xz and zstd.',
      z.string().default('/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin'),
    ),
  }),
);

/** Only the search path of this process: its environment contains the spec of the transfer, with URLs. */
export const toolEnvironment = { PATH: path, LC_ALL: 'C' } as const;

export interface ToolCall {
  readonly program: string;
  readonly args: readonly string[];
  readonly signal: AbortSignal;
  readonly limits?: ToolLimits;
  /** Receives standard output in pieces; then it is not collected. */
  readonly onOutput?: (text: string) => void;
}

/** Resource limits of the program, enforced by the kernel. A program with limits has no network either, if the kernel supports that. */
export interface ToolLimits {
  /** Seconds of CPU time. */
  readonly cpuSeconds: number;
  /** Bytes of address space. */
  readonly memoryBytes: number;
  /** Size limit of the files it writes, in bytes. */
  readonly fileBytes?: number;
}

export interface ToolEnd {
  /** Exit status; `undefined` if it was killed or could not be started. */
  readonly status: number | undefined;
  readonly output: string;
  /** The end of its standard error, or why it could not be started. */
  readonly complaint: string;
  readonly isMissing: boolean;
}

const maxOutputChars = 4 * 1024 * 1024;
const maxComplaintChars = 1000;

/** An empty network namespace, if the kernel permits it to this user. */
const isolate = 'unshare --user --map-current-user --net';

/** `ulimit` counts memory in KiB and files in blocks of 512 bytes. */
const limitScript = ({ cpuSeconds, memoryBytes, fileBytes }: ToolLimits): string =>
  [
    `ulimit -t ${Math.ceil(cpuSeconds)}`,
    `ulimit -v ${Math.ceil(memoryBytes / 1024)}`,
    ...(fileBytes === undefined ? [] : [`ulimit -f ${Math.ceil(fileBytes / 512)}`]),
    'ulimit -c 0',
    // Grouped: the program does not run if a limit cannot be set.
    `{ if ${isolate} true 2>/dev/null; then exec ${isolate} "$@"; fi; exec "$@"; }`,
  ].join(' && ');

const commandOf = ({ program, args, limits }: ToolCall): readonly [string, readonly string[]] =>
  limits === undefined ? [program, args] : ['/bin/sh', ['-c', limitScript(limits), 'sh', program, ...args]];

/**
 * Never throws because of the program's result; throws the reason of the signal once it is aborted. Only the search path of the environment is
 * passed.
 */
export const runTool = async (call: ToolCall): Promise<ToolEnd> => {
  call.signal.throwIfAborted();
  const [file, args] = commandOf(call);
  const child = spawn(file, args, {
    stdio: ['ignore', 'pipe', 'pipe'],
    env: toolEnvironment,
  });
  const kill = () => child.kill('SIGKILL');
  call.signal.addEventListener('abort', kill, { once: true });
  let output = '';
  let complaint = '';
  child.stdout.setEncoding('utf8').on('data', (text: string) => {
    if (call.onOutput === undefined) output = (output + text).slice(0, maxOutputChars);
    else call.onOutput(text);
  });
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    complaint = (complaint + text).slice(-maxComplaintChars);
  });
  const end = await new Promise<ToolEnd>((resolve) => {
    child.on('error', (error) => resolve({ status: undefined, output, complaint: error.message, isMissing: true }));
    child.on('close', (status) =>
      resolve({
        status: status ?? undefined,
        output,
        complaint: complaint.trim(),
        isMissing: status === 127 && call.limits !== undefined,
      }),
    );
  });
  call.signal.removeEventListener('abort', kill);
  call.signal.throwIfAborted();
  return end;
};
