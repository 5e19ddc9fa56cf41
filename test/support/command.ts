// Runs a command of the command line in this process, as a program reads it.
import type { Call, ClusterCommand, ExitCode } from '#cli/command.ts';

interface Given extends Partial<Pick<Call, 'namespace' | 'positionals' | 'values' | 'signal'>> {
  readonly kube: Call['kube'];
  /** Default: 1970. */
  readonly now?: Date;
  /** Width of the screen. Default: a program reads it. */
  readonly columns?: number | undefined;
  /** Called with each text on standard output. */
  readonly onOut?: (text: string) => unknown;
}

interface Printed {
  readonly code: ExitCode;
  readonly out: string;
  readonly err: string;
  /** Both, in the order of a screen. */
  readonly text: string;
}

export const runCommand = async (command: ClusterCommand, given: Given): Promise<Printed> => {
  const { now = new Date(0), columns, onOut, ...call } = given;
  const printed = { out: '', err: '', text: '' };
  const write = (to: 'out' | 'err', text: string): void => {
    printed[to] += text;
    printed.text += text;
  };
  const code = await command.run({
    namespace: 'default',
    positionals: [],
    values: {},
    signal: new AbortController().signal,
    bearer: () => Promise.resolve(undefined),
    ...call,
    terminal: {
      out: (text) => {
        write('out', text);
        onOut?.(text);
      },
      err: (text) => write('err', text),
      isLive: false,
      now: () => now,
      columns,
    },
  });
  return { code, ...printed };
};
