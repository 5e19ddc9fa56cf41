// The name that the command line was called by: krew installs it as a plugin of kubectl alone, so that its hints must say `kubectl bullion`.
import { basename } from 'node:path';
import type { Terminal } from '#cli/command.ts';

/** `called`: paths that may name it; an executable has it in its zeroth argument, a script of Node in its first. */
export const programOf = (called: readonly (string | undefined)[]): string =>
  called.some((path) => /^kubectl-bullion(\.exe)?$/.test(basename(path ?? ''))) ? 'kubectl bullion' : 'bullion';

/** With hints to run `commands` as they can be run here, also those in messages of the cluster. Progress stays as wide as it was measured. */
export const withProgramName = (program: string, terminal: Terminal, commands: readonly string[]): Terminal => {
  if (program === 'bullion') return terminal;
  const hint = new RegExp(String.raw`(?<![\w./-]|kubectl )bullion (?=<|--|(?:${commands.join('|')})\b)`, 'g');
  const rewrite = (text: string): string => (text.startsWith('\r') ? text : text.replaceAll(hint, `${program} `));
  return { ...terminal, out: (text) => terminal.out(rewrite(text)), err: (text) => terminal.err(rewrite(text)) };
};
