// Reads a command line against a command's description. Every fault names the option and what it takes.
import { parseArgs } from 'node:util';
import type { Command, CommandLine, OptionSpec, Options, Values } from '#cli/command.ts';
import { didYouMean } from '#cli/nearest.ts';
import { InvalidInput, messageOf } from '#shared/runtime/errors.ts';

/** Options that every command takes, with the names kubectl has for them; before the command or behind it. */
export const commonOptions = {
  quiet: { type: 'boolean', short: 'q', help: 'no progress: only results, errors and what needs an answer' },
  namespace: { type: 'string', short: 'n', value: 'NAMESPACE', help: 'namespace (that of the context, else default)' },
  kubeconfig: { type: 'string', value: 'FILE', help: 'kubeconfig file (KUBECONFIG, else ~/.kube/config)' },
  context: { type: 'string', value: 'NAME', help: 'context of the kubeconfig (its current one)' },
  cluster: { type: 'string', value: 'NAME', help: "cluster of the kubeconfig (the context's)" },
  user: { type: 'string', value: 'NAME', help: "user of the kubeconfig (the context's)" },
  server: { type: 'string', short: 's', value: 'URL', help: "API server (the cluster's)" },
  'certificate-authority': { type: 'string', value: 'FILE', help: 'certificate authority of the API server' },
  'insecure-skip-tls-verify': { type: 'boolean', help: 'do not verify the certificate of the API server' },
  'tls-server-name': { type: 'string', value: 'NAME', help: "name in the API server's certificate (that of its URL)" },
  token: { type: 'string', value: 'TOKEN', help: "bearer token, in place of the user's credentials" },
  'client-certificate': { type: 'string', value: 'FILE', help: "certificate, in place of the user's credentials" },
  'client-key': { type: 'string', value: 'FILE', help: 'key of the certificate' },
  as: { type: 'string', value: 'USER', help: 'user to act as' },
  'as-group': { type: 'string', value: 'GROUP', help: 'group to act as, with --as; may be repeated', multiple: true },
  help: { type: 'boolean', short: 'h', help: 'show this text' },
} as const satisfies Options;

const takesValue = (arg: string): boolean => {
  const found = Object.entries<OptionSpec>(commonOptions).find(
    ([name, { short }]) => arg === `--${name}` || (short !== undefined && arg === `-${short}`),
  );
  return found?.[1].type === 'string';
};

/** The command among the arguments: the first that is neither an option that every command takes nor its value. */
export const splitCommand = (
  args: readonly string[],
): { readonly name: string | undefined; readonly rest: readonly string[] } => {
  let at = 0;
  while (at < args.length && args[at]?.startsWith('-') === true) at += takesValue(args[at] ?? '') ? 2 : 1;
  return { name: args[at], rest: [...args.slice(0, at), ...args.slice(at + 1)] };
};

/** Throws InvalidInput with words about what is wrong. */
export const parseCommandLine = (command: Command, args: readonly string[]): CommandLine => {
  const options = { ...command.options, ...commonOptions };
  const { values, positionals } = parse(args, options);
  if (values['help'] !== true) checkCount(command, positionals);
  for (const [name, { oneOf, orPrefix }] of Object.entries<Options[string]>(options)) {
    const value = values[name];
    if (typeof value !== 'string' || (orPrefix !== undefined && value.startsWith(orPrefix))) continue;
    if (oneOf !== undefined && !oneOf.includes(value))
      throw new InvalidInput(`--${name} is one of ${oneOf.join(', ')}, not ${value}`);
  }
  return { positionals, values };
};

const parse = (args: readonly string[], options: Options): CommandLine => {
  const parsed = Object.fromEntries(
    Object.entries(options).map(([name, { type, short, multiple = false }]) => [
      name,
      short === undefined ? { type, multiple } : { type, short, multiple },
    ]),
  );
  try {
    const { values, positionals } = parseArgs({ args: [...args], options: parsed, allowPositionals: true });
    return { values: values as Values, positionals };
  } catch (error) {
    throw new InvalidInput(faultOf(error, options), [], { cause: error });
  }
};

const longOf = (name: string): string => `--${name}`;

/** Node's words for an unknown option speak of positional arguments; the other ones name the option and what it takes. */
const faultOf = (error: unknown, options: Options): string => {
  const message = messageOf(error);
  const unknown = /^Unknown option '([^']+)'/.exec(message)?.[1];
  return unknown === undefined
    ? message
    : `there is no option ${unknown} here${didYouMean(unknown, Object.keys(options).map(longOf))}`;
};

const checkCount = (command: Command, positionals: readonly string[]): void => {
  const words = command.arguments === '' ? [] : command.arguments.split(' ');
  const least = words.filter((word) => !word.startsWith('[')).length;
  if (positionals.length < least) throw new InvalidInput(`${words[positionals.length]} is missing`);
  if (positionals.length > words.length && words.at(-1)?.endsWith('…]') !== true)
    throw new InvalidInput(`unexpected argument: ${positionals.slice(words.length).join(' ')}`);
};
