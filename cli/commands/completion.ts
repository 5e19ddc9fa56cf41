// `bullion completion <shell>`: what a shell needs to complete commands, options and image names.
import { type Command, type Options, type PlainCommand, exitCodes } from '#cli/command.ts';
import { commonOptions } from '#cli/options.ts';
import { InvalidInput } from '#shared/runtime/errors.ts';

const flagsOf = ({ options }: Command): readonly string[] =>
  Object.keys({ ...options, ...commonOptions }).map((name) => `--${name}`);

const valuesOf = (commands: readonly Command[]): ReadonlyMap<string, readonly string[]> =>
  new Map(
    commands.flatMap(({ options }) =>
      Object.entries(options).flatMap(([name, { oneOf }]) =>
        oneOf === undefined ? [] : [[`--${name}`, oneOf] as const],
      ),
    ),
  );

const bash = (commands: readonly Command[]): string => `# bullion completion for bash: source <(bullion completion bash)
_bullion() {
  local current="\${COMP_WORDS[COMP_CWORD]}" before="\${COMP_WORDS[COMP_CWORD-1]}" command="\${COMP_WORDS[1]}"
  if [ "$COMP_CWORD" -eq 1 ]; then
    COMPREPLY=($(compgen -W "${commands.map(({ name }) => name).join(' ')}" -- "$current")); return
  fi
  case "$before" in
${[...valuesOf(commands)].map(([name, values]) => `    ${name}) COMPREPLY=($(compgen -W "${values.join(' ')}" -- "$current")); return ;;`).join('\n')}
    --kubeconfig) COMPREPLY=($(compgen -f -- "$current")); return ;;
  esac
  case "$command" in
${commands.map((command) => `    ${command.name}) local flags="${flagsOf(command).join(' ')}" ;;`).join('\n')}
    *) return ;;
  esac
  if [[ "$current" == -* ]]; then COMPREPLY=($(compgen -W "$flags" -- "$current")); return; fi
  case "$command" in
    ${commands.flatMap(({ name, completes }) => (completes === 'images' ? [name] : [])).join('|')})
      COMPREPLY=($(compgen -W "$(bullion images -o name 2>/dev/null | sed 's|.*/||')" -- "$current")) ;;
    *) COMPREPLY=($(compgen -f -- "$current")) ;;
  esac
}
complete -F _bullion bullion
`;

const zsh = (commands: readonly Command[]): string => `# bullion completion for zsh: source <(bullion completion zsh)
autoload -U +X bashcompinit && bashcompinit
${bash(commands)}`;

const fish = (commands: readonly Command[]): string =>
  [
    '# bullion completion for fish: bullion completion fish | source',
    'complete -c bullion -f',
    ...commands.map(({ name, summary }) => `complete -c bullion -n __fish_use_subcommand -a ${name} -d '${summary}'`),
    ...commands.flatMap(({ name, options }) =>
      Object.entries<Options[string]>({ ...options, ...commonOptions }).map(([option, { help, oneOf, type }]) => {
        const takes = type === 'boolean' ? '' : oneOf === undefined ? ' -r -F' : ` -x -a '${oneOf.join(' ')}'`;
        return `complete -c bullion -n '__fish_seen_subcommand_from ${name}' -l ${option}${takes} -d '${help.replaceAll("'", '')}'`;
      }),
    ),
    ...commands.flatMap(({ name, completes }) =>
      completes === 'images'
        ? [
            `complete -c bullion -n '__fish_seen_subcommand_from ${name}' -a '(bullion images -o name | string replace -r ".*/" "")'`,
          ]
        : [],
    ),
    '',
  ].join('\n');

const shells = { bash, zsh, fish } as const;

/** The command needs to know all others. */
export const completionCommand = (others: () => readonly Command[]): PlainCommand => ({
  name: 'completion',
  arguments: '<shell>',
  summary: 'Prints completion for bash, zsh or fish.',
  more: 'For this shell: source <(bullion completion bash)',
  options: {},
  runPlain: async ({ positionals, terminal }) => {
    const name = positionals[0] ?? '';
    if (!(name in shells))
      throw new InvalidInput(`there is no completion for ${name}: say ${Object.keys(shells).join(', ')}`);
    terminal.out(shells[name as keyof typeof shells](others()));
    return exitCodes.done;
  },
});
