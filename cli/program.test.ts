// Hints name the command line as it was called.
import { expect, it } from 'vitest';
import { programOf, withProgramName } from '#cli/program.ts';
import { runCommandLine } from '#cli/run.ts';

it.each([
  ['bullion', ['node', '/work/cli/main.ts']],
  ['bullion', ['/usr/bin/bullion', undefined]],
  ['kubectl bullion', ['node', '/home/jane/.local/bin/kubectl-bullion']],
  ['kubectl bullion', ['/home/jane/.krew/bin/kubectl-bullion', 'why']],
  ['kubectl bullion', ['kubectl-bullion.exe', undefined]],
])('is %s when called as %j', (name, called) => {
  expect(programOf(called)).toBe(name);
});

it.each([
  ['run bullion retry jammy', 'run kubectl bullion retry jammy'],
  ['bullion --help lists them', 'kubectl bullion --help lists them'],
  ['  bullion <command> [options]', '  kubectl bullion <command> [options]'],
  ['kubectl bullion why jammy', 'kubectl bullion why jammy'],
  ['bullion: there is no image bullion', 'bullion: there is no image bullion'],
  ['bullion 0.1.0, in /opt/bullion why', 'bullion 0.1.0, in /opt/bullion why'],
  ['\r\u001B[2Kbullion why jammy', '\r\u001B[2Kbullion why jammy'],
])('says "%s" as "%s"', (text, said) => {
  let written = '';
  const write = (more: string): void => {
    written += more;
  };
  const terminal = { out: write, err: () => {}, isLive: true, now: () => new Date(0) };
  withProgramName('kubectl bullion', terminal, ['retry', 'why']).out(text);
  expect(written).toBe(said);
});

it.each([
  [['--help'], /\n {2}kubectl bullion <command> \[options\]/],
  [['prune', '--help'], /\n {2}kubectl bullion prune /],
  [['imprt'], /\nkubectl bullion --help lists them/],
  // A script is not for people.
  [['completion', 'fish'], /\(bullion completion/],
] as const)('is said by %j', async (args, says) => {
  let written = '';
  const write = (more: string): void => {
    written += more;
  };
  const terminal = { out: write, err: write, isLive: false, now: () => new Date(0) };
  await runCommandLine(args, { terminal, signal: new AbortController().signal, program: 'kubectl bullion' });
  expect(written).toMatch(says);
});
