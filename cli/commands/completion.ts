// `bullion completion <shell>`: what a shell needs to complete commands and options, and kinds, names, namespaces and contexts of the cluster.
import { configOf, headersOf } from '#cli/cluster.ts';
import {
  type Command,
  type OptionSpec,
  type Options,
  type PlainCommand,
  type Values,
  exitCodes,
  textOf,
} from '#cli/command.ts';
import { commonOptions } from '#cli/options.ts';
import { namespaces } from '#shared/api/foreign/core.ts';
import { createKubeClient, loadKubeConfig } from '#shared/clients/kube/create.ts';
import { InvalidInput } from '#shared/runtime/errors.ts';

type Entry = readonly [name: string, spec: OptionSpec];

const optionsOf = ({ options }: Command): readonly Entry[] =>
  Object.entries<OptionSpec>({ ...options, ...commonOptions });

const flagsOf = (command: Command): string =>
  optionsOf(command)
    .map(([name]) => `--${name}`)
    .join(' ');

/** Every option of every command once; those that match. */
const optionsWhere = (commands: readonly Command[], matches: (spec: OptionSpec) => boolean): readonly Entry[] => [
  ...new Map(commands.flatMap(optionsOf).filter(([, spec]) => matches(spec))),
];

const patternOf = ([name, { short }]: Entry): string => (short === undefined ? `--${name}` : `--${name}|-${short}`);

/** Options whose value is a path. */
const takesFile = ({ value, oneOf }: OptionSpec): boolean =>
  oneOf === undefined && (value === 'FILE' || value === 'DIR');
const takesWord = ({ type, oneOf }: OptionSpec): boolean => type === 'string' && oneOf === undefined;

/** Of options by what they take: a list that `bullion completion` prints. */
const listOfValue: Readonly<Record<string, string | undefined>> = { CONTEXT: 'contexts', NAMESPACE: 'namespaces' };
const lists: Readonly<Record<string, (values: Values) => Promise<readonly string[]>>> = {
  contexts: async (values) =>
    loadKubeConfig(textOf(values, 'kubeconfig'))
      .getContexts()
      .map(({ name }) => name),
  namespaces: (values) =>
    Array.fromAsync(
      createKubeClient(configOf(values), headersOf(values)).listAll(namespaces),
      ({ metadata }) => metadata.name,
    ),
};

/** Options that say which cluster is meant, so that the names offered are those of that cluster. */
const clusterOptions = Object.entries<OptionSpec>(commonOptions).filter(([, { type }]) => type === 'string');

const listNames = (kinds: string): string => `get ${kinds} -o name 2>/dev/null`;

const argumentOf = ({ name, completes }: Command): string => {
  if (completes === undefined) return '';
  const words =
    typeof completes === 'string'
      ? `$(bullion ${listNames(completes)} "\${cluster[@]}" | sed 's|.*/||')`
      : completes.join(' ');
  return `    ${name}) [ "$place" -eq 0 ] && { COMPREPLY=($(compgen -W "${words}" -- "$current")); return; } ;;\n`;
};

/** What is offered behind options: the words there are, files, or nothing that a shell could know. `behind` says where they stand. */
const valuesBehind = (options: Options, behind: (flag: string) => string): string => {
  const entries = Object.entries<OptionSpec>(options);
  const linesOf = (some: readonly Entry[], offer: string): string => {
    const flags = some.flatMap((entry) => patternOf(entry).split('|'));
    return flags.length === 0 ? '' : `    ${flags.map(behind).join('|')}) ${offer}return ;;\n`;
  };
  return [
    ...entries
      .filter(([, { oneOf }]) => oneOf !== undefined)
      .map((entry) => linesOf([entry], `COMPREPLY=($(compgen -W "${entry[1].oneOf?.join(' ')}" -- "$current")); `)),
    linesOf(
      entries.filter(([, spec]) => takesFile(spec)),
      'COMPREPLY=($(compgen -f -- "$current")); ',
    ),
    ...Object.entries(listOfValue).map(([value, list]) =>
      linesOf(
        entries.filter(([, spec]) => spec.value === value),
        `COMPREPLY=($(compgen -W "$(bullion completion ${list} "\${cluster[@]}" 2>/dev/null)" -- "$current")); `,
      ),
    ),
    linesOf(
      entries.filter(([, spec]) => takesWord(spec) && !takesFile(spec) && listOfValue[spec.value ?? ''] === undefined),
      '',
    ),
  ].join('');
};

/** An option of one name may take something else in each command. */
const values = (commands: readonly Command[]): string =>
  commands.map(({ name, options }) => valuesBehind(options, (flag) => `"${name} ${flag}"`)).join('') +
  valuesBehind(commonOptions, (flag) => `*" ${flag}"`);

const patterns = (entries: readonly Entry[]): string => entries.map(patternOf).join('|');

const bash = (commands: readonly Command[]): string => `# bullion completion for bash: source <(bullion completion bash)
_bullion() {
  local current="\${COMP_WORDS[COMP_CWORD]}" before="\${COMP_WORDS[COMP_CWORD-1]}" command="" flags="" word="" at=1 place=-1
  local cluster=()
  if [ "$current" = "=" ]; then current=""; fi
  if [ "$before" = "=" ]; then before="\${COMP_WORDS[COMP_CWORD-2]}"; fi
  while [ "$at" -lt "$COMP_CWORD" ]; do
    word="\${COMP_WORDS[at]}"
    case "$word" in
      ${patterns(clusterOptions)})
        at=$((at+1)); if [ "\${COMP_WORDS[at]}" = "=" ]; then at=$((at+1)); fi
        cluster+=("$word" "\${COMP_WORDS[at]}") ;;
      ${patterns(optionsWhere(commands, (spec) => spec.type === 'string' && !(clusterOptions as readonly Entry[]).some(([, known]) => known === spec)))})
        at=$((at+1)); if [ "\${COMP_WORDS[at]}" = "=" ]; then at=$((at+1)); fi ;;
      -*) ;;
      *) if [ -z "$command" ]; then command="$word"; place=0; else place=$((place+1)); fi ;;
    esac
    at=$((at+1))
  done
  case "$command $before" in
${values(commands)}  esac
  case "$command" in
    "") flags="${Object.keys(commonOptions)
      .map((name) => `--${name}`)
      .join(' ')} --version" ;;
${commands.map((command) => `    ${command.name}) flags="${flagsOf(command)}" ;;\n`).join('')}    help) COMPREPLY=($(compgen -W "${commands.map(({ name }) => name).join(' ')}" -- "$current")); return ;;
    *) return ;;
  esac
  if [[ "$current" == -* ]]; then COMPREPLY=($(compgen -W "$flags" -- "$current")); return; fi
  case "$command" in
    "") COMPREPLY=($(compgen -W "${commands.map(({ name }) => name).join(' ')} help" -- "$current")); return ;;
${commands.map(argumentOf).join('')}  esac
  COMPREPLY=($(compgen -f -- "$current"))
}
complete -o default -F _bullion bullion
`;

const zsh = (commands: readonly Command[]): string => `# bullion completion for zsh: source <(bullion completion zsh)
(( $+functions[compdef] )) || { autoload -U +X compinit && compinit -u }
autoload -U +X bashcompinit && bashcompinit
${bash(commands)}`;

const quoted = (text: string): string => `'${text.replaceAll('\\', '\\\\').replaceAll("'", "\\'")}'`;

const fishOption = (command: string, [name, spec]: Entry): string => {
  const short = spec.short === undefined ? '' : ` -s ${spec.short}`;
  const list = listOfValue[spec.value ?? ''];
  const words = list === undefined ? spec.oneOf?.join(' ') : `(bullion completion ${list} 2>/dev/null)`;
  const choice = words === undefined ? ' -x' : ` -x -a ${quoted(words)}`;
  const takes = spec.type === 'boolean' ? '' : takesFile(spec) ? ' -r -F' : choice;
  return `complete -c bullion -n '__fish_seen_subcommand_from ${command}' -l ${name}${short}${takes} -d ${quoted(spec.help)}`;
};

const fishArgument = ({ name, completes, arguments: words }: Command): readonly string[] => {
  const of = `complete -c bullion -n '__fish_seen_subcommand_from ${name}'`;
  // The second argument of those that take an image is a file, too.
  const files = /\bfile\b|<source>/.test(words) ? [`${of} -F`] : [];
  if (completes === undefined) return files;
  const offered =
    typeof completes === 'string'
      ? `(bullion ${listNames(completes)} | string replace -r ".*/" "")`
      : completes.join(' ');
  return [...files, `${of} -a ${quoted(offered)}`];
};

const fish = (commands: readonly Command[]): string =>
  [
    '# bullion completion for fish: bullion completion fish | source',
    'complete -c bullion -f',
    ...commands.map(
      ({ name, summary }) => `complete -c bullion -n __fish_use_subcommand -a ${name} -d ${quoted(summary)}`,
    ),
    ...commands.flatMap((command) => optionsOf(command).map((entry) => fishOption(command.name, entry))),
    ...commands.flatMap(fishArgument),
    '',
  ].join('\n');

/** kubectl asks a program of this name on the path, with the words so far, and reads what it may offer; `:4`: and no files. */
const kubectl = (commands: readonly Command[]): string => `#!/usr/bin/env bash
# completion of kubectl bullion: bullion completion kubectl > kubectl_complete-bullion, executable, on the path
bullion() { kubectl-bullion "$@"; }
${bash(commands)}COMP_WORDS=(bullion "$@"); COMP_CWORD=$#; _bullion; printf '%s\\n' "\${COMPREPLY[@]}" :4
`;

const shells = { bash, zsh, fish, kubectl } as const;

/** The command needs to know all others. */
export const completionCommand = (others: () => readonly Command[]): PlainCommand => ({
  name: 'completion',
  arguments: '<shell>',
  summary: 'Prints completion for bash, zsh, fish or kubectl.',
  more: 'For this shell: source <(bullion completion bash), or bullion completion fish | source\n\n  bullion completion bash > ~/.local/share/bash-completion/completions/bullion\n  kubectl bullion completion kubectl > ~/.local/bin/kubectl_complete-bullion && chmod +x ~/.local/bin/kubectl_complete-bullion\n\nWith contexts or namespaces in place of a shell, it prints those that are offered.',
  options: {},
  completes: Object.keys(shells),
  runPlain: async ({ positionals, values, terminal }) => {
    const name = positionals[0] ?? '';
    const names = await lists[name]?.(values);
    if (names !== undefined) {
      terminal.out(names.map((one) => `${one}\n`).join(''));
      return exitCodes.done;
    }
    if (!Object.hasOwn(shells, name))
      throw new InvalidInput(`there is no completion for ${name}: use ${Object.keys(shells).join(', ')}`);
    terminal.out(shells[name as keyof typeof shells](others()));
    return exitCodes.done;
  },
});
