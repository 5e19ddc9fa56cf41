import { describe, expect, it } from 'vitest';
import { parseCommandLine, splitCommand } from '#cli/options.ts';
import { commands } from '#cli/run.ts';
import { timeoutOf } from '#cli/wait.ts';

const commandNamed = (name: string) => commands.find((command) => command.name === name)!;

describe('the command line', () => {
  it('reads options anywhere, long and short', () => {
    const line = parseCommandLine(commandNamed('import'), ['-n', 'vms', 'jammy', '--size=20Gi', 'http://a/b']);
    expect(line).toEqual({ positionals: ['jammy', 'http://a/b'], values: { namespace: 'vms', size: '20Gi' } });
  });

  it.each<[args: readonly string[], name: string | undefined, rest: readonly string[]]>([
    [['images', '-A'], 'images', ['-A']],
    [['-n', 'vms', 'why', 'x', '-o', 'wide'], 'why', ['-n', 'vms', 'x', '-o', 'wide']],
    [
      ['--context=far', '--insecure-skip-tls-verify', 'images'],
      'images',
      ['--context=far', '--insecure-skip-tls-verify'],
    ],
    [['-n'], undefined, ['-n']],
    [['--help'], undefined, ['--help']],
  ])('finds the command in %j', (args, name, rest) => expect(splitCommand(args)).toEqual({ name, rest }));

  it.each([
    ['import', [], '<name> is missing'],
    ['import', ['jammy'], '<source> is missing'],
    ['why', ['a', 'b'], 'unexpected argument: b'],
    ['images', ['--colour'], 'there is no option --colour here'],
    ['images', ['--namspace', 'x'], 'there is no option --namspace here; did you mean --namespace?'],
    ['plan', ['-A'], 'there is no option -A here'],
    ['images', ['-o', 'xml'], '--output is one of json, yaml, wide, name, not xml'],
    ['import', ['a', 'b', '--group', 'x'], '--group is one of hypercloud, harvester, not x'],
  ])('%s %j is refused: %s', (name, args, message) => {
    expect(() => parseCommandLine(commandNamed(name), args)).toThrow(message);
  });

  it.each(commands.map(({ name, more = '' }) => [name, more]))('the help of %s has an example', (name, more) =>
    expect(more).toMatch(new RegExp(`(?:^|\\n) {2}bullion ${name}\\b`)),
  );

  it.each([
    ['90', 90_000],
    ['90s', 90_000],
    ['1.5m', 90_000],
    ['2h', 7_200_000],
  ])('a time of %s', (text, milliseconds) => expect(timeoutOf({ timeout: text })).toBe(milliseconds));

  it.each(['', 'soon', '-5s', '5d'])('a time of %j is refused', (text) =>
    expect(() => timeoutOf({ timeout: text })).toThrow('--timeout is a time such as 90s, 10m or 2h'),
  );
});
