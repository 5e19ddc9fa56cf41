// `bullion` in this process, and what a person and a script would see of it.
import type { ExitCode } from '#cli/command.ts';
import { runCommandLine } from '#cli/run.ts';

export interface Said {
  readonly code: ExitCode;
  /** Standard output. */
  readonly out: string;
  /** Standard error, of which nobody watches progress. */
  readonly err: string;
}

export const runBullion = async (
  args: readonly string[],
  signal: AbortSignal = new AbortController().signal,
): Promise<Said> => {
  const said = { out: '', err: '' };
  const terminal = {
    out: (text: string) => void (said.out += text),
    err: (text: string) => void (said.err += text),
    isLive: false,
    now: () => new Date(),
  };
  const code = await runCommandLine(args, { terminal, signal });
  return { code, ...said };
};
