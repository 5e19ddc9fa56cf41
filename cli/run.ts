// Finds the command, connects it to the cluster it is meant for, and says what went wrong. Called by main.ts and tests.
import { bearerOf, configOf, namespaceOf } from '#cli/cluster.ts';
import {
  type Command,
  type CommandLine,
  type ExitCode,
  type Surroundings,
  type Terminal,
  exitCodes,
} from '#cli/command.ts';
import { helpOf, overview } from '#cli/help.ts';
import { parseCommandLine } from '#cli/options.ts';
import { commands } from '#cli/registry.ts';
import { createKubeClient } from '#shared/clients/kube/create.ts';
import { AppError, InvalidInput, isNotFound, messageOf } from '#shared/runtime/errors.ts';

export const runCommandLine = async (args: readonly string[], around: Surroundings): Promise<ExitCode> => {
  const { terminal } = around;
  const [name, ...rest] = args;
  if (name === undefined || name === '--help' || name === '-h' || name === 'help') return explain(rest[0], terminal);
  const command = commands.find((known) => known.name === name);
  if (command === undefined) {
    terminal.err(`bullion: there is no command ${name}; bullion --help lists them\n`);
    return exitCodes.usage;
  }
  try {
    const line = parseCommandLine(command, rest);
    if (line.values['help'] === true) return explain(command.name, terminal);
    return await start(command, line, around);
  } catch (error) {
    if (around.signal.aborted && !(error instanceof AppError)) {
      terminal.err('bullion: interrupted; the same command again goes on\n');
      return exitCodes.failed;
    }
    return complain(command, error, terminal);
  }
};

const explain = (name: string | undefined, terminal: Terminal): ExitCode => {
  const command = commands.find((known) => known.name === name);
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
  const kube = createKubeClient(config);
  return command.run({ positionals, values, kube, bearer: () => bearerOf(config), namespace, ...around });
};

/** What was wrong, and where to read on. Anything but an AppError is a defect of ours and keeps its stack. */
const complain = (command: Command, error: unknown, terminal: Terminal): ExitCode => {
  if (!(error instanceof AppError)) {
    terminal.err(`bullion: ${error instanceof Error ? (error.stack ?? error.message) : String(error)}\n`);
    return exitCodes.failed;
  }
  terminal.err(`bullion: ${messageOf(error)}\n`);
  if (error instanceof InvalidInput) {
    const told = error.faults.filter(({ message }) => !error.message.includes(message));
    for (const { field, message } of told) terminal.err(`  ${field}: ${message}\n`);
    const isOurs = error.faults.length === 0;
    if (isOurs) terminal.err(`bullion ${command.name} --help says more\n`);
    return isOurs ? exitCodes.usage : exitCodes.failed;
  }
  return isNotFound(error) ? exitCodes.notFound : exitCodes.failed;
};
