// Finds the command, connects it to the cluster it is meant for, and says what went wrong. Called by main.ts and tests.
import packageFile from '../package.json' with { type: 'json' };
import { bearerOf, configOf, headersOf, namespaceOf } from '#cli/cluster.ts';
import {
  type Command,
  type CommandLine,
  type ExitCode,
  type Surroundings,
  type Terminal,
  exitCodes,
} from '#cli/command.ts';
import { helpOf, overview } from '#cli/help.ts';
import { parseCommandLine, splitCommand } from '#cli/options.ts';
import { commands } from '#cli/registry.ts';
import { createKubeClient } from '#shared/clients/kube/create.ts';
import { AppError, InvalidInput, isNotFound, messageOf } from '#shared/runtime/errors.ts';

export const runCommandLine = async (args: readonly string[], around: Surroundings): Promise<ExitCode> => {
  const { terminal } = around;
  const { name, rest } = splitCommand(args);
  if (args.includes('--version') && name === undefined) return tellVersion(terminal);
  if (name === 'help') return explain(rest[0], terminal);
  if (name === undefined) return explain(undefined, terminal);
  const command = commands.find((known) => known.name === name);
  if (command === undefined) return refuse(name, terminal);
  try {
    const line = parseCommandLine(command, rest);
    if (line.values['help'] === true) return explain(command.name, terminal);
    return await start(command, line, around);
  } catch (error) {
    const code = complain(command, error, around);
    return around.signal.aborted ? exitCodes.interrupted : code;
  }
};

const refuse = (name: string, terminal: Terminal): ExitCode => {
  terminal.err(`bullion: there is no command ${name}; bullion --help lists them\n`);
  return exitCodes.usage;
};

const tellVersion = (terminal: Terminal): ExitCode => {
  terminal.out(`bullion ${packageFile.version}\n`);
  return exitCodes.done;
};

const explain = (name: string | undefined, terminal: Terminal): ExitCode => {
  const command = commands.find((known) => known.name === name);
  if (name !== undefined && command === undefined) return refuse(name, terminal);
  terminal.out(command === undefined ? overview(commands) : helpOf(command));
  return exitCodes.done;
};

const start = async (
  command: Command,
  { positionals, values }: CommandLine,
  around: Surroundings,
): Promise<ExitCode> => {
  if ('runPlain' in command) return command.runPlain({ positionals, values, ...around });
  const config = configOf(values);
  const namespace = namespaceOf(values, config);
  const kube = createKubeClient(config, headersOf(values));
  // The caller's own token is no leave to act as another.
  const bearer = () => (values['as'] === undefined ? bearerOf(config) : Promise.resolve(undefined));
  return command.run({ positionals, values, kube, bearer, namespace, ...around });
};

/** The words of the system for an API server that is not there, in the chain of what caused the error. */
const isUnreachable = (error: unknown): boolean =>
  error instanceof Error &&
  (/^(ECONN|ENOTFOUND|EAI_AGAIN|EHOSTUNREACH|ENETUNREACH|UND_ERR_CONNECT|UND_ERR_HEADERS|CERT_|DEPTH_|SELF_SIGNED|UNABLE_TO|ERR_TLS)/.test(
    String((error as NodeJS.ErrnoException).code ?? ''),
  ) ||
    isUnreachable(error.cause));

const wordsOf = (error: unknown): string => (error instanceof Error ? (error.stack ?? error.message) : String(error));

/** What was wrong, and where to read on. Anything but an AppError is a defect of ours and keeps its stack. */
const complain = (command: Command, error: unknown, { terminal, signal }: Surroundings): ExitCode => {
  if (!(error instanceof AppError)) {
    terminal.err(
      signal.aborted ? 'bullion: interrupted; the same command again goes on\n' : `bullion: ${wordsOf(error)}\n`,
    );
    return exitCodes.failed;
  }
  // What the API server says, without how it was asked.
  terminal.err(`bullion: ${messageOf(error).replace(/^Kubernetes API: [A-Z]+ \/\S+: /, '')}\n`);
  if (error instanceof InvalidInput) return complainOfInput(command, error, terminal);
  if (error.message.startsWith('Kubernetes API') && isUnreachable(error))
    terminal.err(
      'is the cluster running, and is it the one you mean? --kubeconfig, --context and --server say which\n',
    );
  return isNotFound(error) ? exitCodes.notFound : exitCodes.failed;
};

const complainOfInput = (command: Command, error: InvalidInput, terminal: Terminal): ExitCode => {
  const told = error.faults.filter(({ message }) => !error.message.includes(message));
  for (const { field, message } of told) terminal.err(`  ${field}: ${message}\n`);
  const isOurs = error.faults.length === 0;
  if (isOurs) terminal.err(`bullion ${command.name} --help says more\n`);
  return isOurs ? exitCodes.usage : exitCodes.failed;
};
