// Runs `bullion` in this process, with its output for users and scripts.
import type { ExitCode } from '#cli/command.ts';
import { runCommandLine } from '#cli/run.ts';

export interface Said {
  readonly code: ExitCode;
  /** Standard output. */
  readonly out: string;
  /** Standard error, without a terminal. */
  readonly err: string;
}

export const runBullion = async (
  args: readonly string[],
  signal: AbortSignal = new AbortController().signal,
): Promise<Said> => {
  const output = { out: '', err: '' };
  const terminal = {
    out: (text: string) => void (output.out += text),
    err: (text: string) => void (output.err += text),
    isLive: false,
    now: () => new Date(),
  };
  const code = await runCommandLine(args, { terminal, signal });
  return { code, ...output };
};
