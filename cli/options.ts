// Reads a command line against a command's description. Every fault names the option and what it takes.
import { parseArgs } from 'node:util';
import type { Command, CommandLine, Options, Values } from '#cli/command.ts';
import { InvalidInput, messageOf } from '#shared/runtime/errors.ts';

/** Options that every command takes. */
export const commonOptions = {
  namespace: { type: 'string', short: 'n', value: 'NAMESPACE', help: 'namespace (that of the context, else default)' },
  kubeconfig: { type: 'string', value: 'FILE', help: 'kubeconfig file (KUBECONFIG, else ~/.kube/config)' },
  context: { type: 'string', value: 'NAME', help: 'context of the kubeconfig (its current one)' },
  cluster: { type: 'string', value: 'NAME', help: "cluster of the kubeconfig (the context's)" },
  user: { type: 'string', value: 'NAME', help: "user of the kubeconfig (the context's)" },
  help: { type: 'boolean', short: 'h', help: 'this text' },
} as const satisfies Options;

/** Throws InvalidInput with words about what is wrong. */
export const parseCommandLine = (command: Command, args: readonly string[]): CommandLine => {
  const options = { ...command.options, ...commonOptions };
  const { values, positionals } = parse(args, options);
  if (values['help'] !== true) checkCount(command, positionals);
  for (const [name, { oneOf }] of Object.entries<Options[string]>(options)) {
    const value = values[name];
    if (oneOf !== undefined && typeof value === 'string' && !oneOf.includes(value))
      throw new InvalidInput(`--${name} is one of ${oneOf.join(', ')}, not ${value}`);
  }
  return { positionals, values };
};

const parse = (args: readonly string[], options: Options): CommandLine => {
  const parsed = Object.fromEntries(
    Object.entries(options).map(([name, { type, short }]) => [name, short === undefined ? { type } : { type, short }]),
  );
  try {
    const { values, positionals } = parseArgs({ args: [...args], options: parsed, allowPositionals: true });
    return { values: values as Values, positionals };
  } catch (error) {
    throw new InvalidInput(messageOf(error), [], { cause: error });
  }
};

const checkCount = (command: Command, positionals: readonly string[]): void => {
  const words = command.arguments === '' ? [] : command.arguments.split(' ');
  const least = words.filter((word) => !word.startsWith('[')).length;
  if (positionals.length < least) throw new InvalidInput(`${words[positionals.length]} is missing`);
  if (positionals.length > words.length)
    throw new InvalidInput(`one too many: ${positionals.slice(words.length).join(' ')}`);
};
