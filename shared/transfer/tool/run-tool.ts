// Runs a helper program to its end, within limits, killed when the transfer is cancelled.
import { spawn } from 'node:child_process';
import { z } from 'zod';
import { parseConfig, setting } from '#shared/runtime/config.ts';

/** What helper programs are run with. */
const { path } = parseConfig(
  z.object({
    path: setting(
      'PATH',
      'Where qemu-img, xz and zstd are looked for.',
      z.string().default('/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin'),
    ),
  }),
);

/** The search path of this process, and nothing else of its environment: that holds what the transfer is told, addresses and all. */
export const toolEnvironment = { PATH: path, LC_ALL: 'C' } as const;

export interface ToolCall {
  readonly program: string;
  readonly args: readonly string[];
  readonly signal: AbortSignal;
  readonly limits?: ToolLimits;
  /** Told each piece of standard output as it comes, instead of it being kept. */
  readonly onOutput?: (text: string) => void;
}

/** Resource limits of the program, enforced by the kernel. Whoever has some has no network either, where that can be taken away. */
export interface ToolLimits {
  /** Seconds of processor time. */
  readonly cpuSeconds: number;
  /** Bytes of address space. */
  readonly memoryBytes: number;
  /** Bytes the largest file it writes may have. */
  readonly fileBytes?: number;
}

export interface ToolEnd {
  /** Exit status; `undefined` when it was killed or could not be started. */
  readonly status: number | undefined;
  readonly output: string;
  /** The end of what it said on standard error, or why it could not be started. */
  readonly complaint: string;
  readonly isMissing: boolean;
}

const maxOutputChars = 4 * 1024 * 1024;
const maxComplaintChars = 1000;

/** A network of its own, with nothing in it, where the kernel lets whoever asks have one. */
const isolate = 'unshare --user --map-current-user --net';

/** `ulimit` counts memory in KiB and files in blocks of 512 bytes. */
const limitScript = ({ cpuSeconds, memoryBytes, fileBytes }: ToolLimits): string =>
  [
    `ulimit -t ${Math.ceil(cpuSeconds)}`,
    `ulimit -v ${Math.ceil(memoryBytes / 1024)}`,
    ...(fileBytes === undefined ? [] : [`ulimit -f ${Math.ceil(fileBytes / 512)}`]),
    'ulimit -c 0',
    // In braces: without a limit nothing is run.
    `{ if ${isolate} true 2>/dev/null; then exec ${isolate} "$@"; fi; exec "$@"; }`,
  ].join(' && ');

const commandOf = ({ program, args, limits }: ToolCall): readonly [string, readonly string[]] =>
  limits === undefined ? [program, args] : ['/bin/sh', ['-c', limitScript(limits), 'sh', program, ...args]];

/** Never throws for what the program does; throws the signal's reason once it is aborted. Of the environment only the search path is handed on. */
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
