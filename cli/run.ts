// Every command; finds the one that is meant, connects it to its cluster, and says what went wrong. Called by main.ts and tests.
import { serverMessageOf } from '#shared/clients/kube/wire.ts';
import packageFile from '../package.json' with { type: 'json' };
import { bearerOf, configOf, headersOf, namespaceOf } from '#cli/cluster.ts';
import {
  type Command,
  type CommandLine,
  type ExitCode,
  type Surroundings,
  type Terminal,
  exitCodes,
  type OptionSpec,
  type Options,
} from '#cli/command.ts';
import { parseCommandLine, splitCommand, commonOptions } from '#cli/options.ts';
import { createKubeClient } from '#shared/clients/kube/create.ts';
import { AppError, Denied, InvalidInput, isNotFound } from '#shared/runtime/errors.ts';
import { didYouMean } from '#cli/nearest.ts';
import { withProgramName } from '#cli/program.ts';
import { alignColumns } from '#cli/output.ts';
import { backupsCommand } from '#cli/commands/backups.ts';
import { bundleCommand } from '#cli/commands/bundle.ts';
import { consumersCommand, deleteCommand, outdatedCommand } from '#cli/commands/consumers.ts';
import { completionCommand } from '#cli/commands/completion.ts';
import { diskCommand } from '#cli/commands/disk.ts';
import { doctorCommand } from '#cli/commands/doctor.ts';
import { downloadCommand } from '#cli/commands/download.ts';
import { eventsCommand } from '#cli/commands/events.ts';
import { explainCommand } from '#cli/commands/explain.ts';
import { exportCommand } from '#cli/commands/export.ts';
import { footprintCommand } from '#cli/commands/footprint.ts';
import { dataSourcesCommand, getCommand } from '#cli/commands/get.ts';
import { imagesCommand } from '#cli/commands/images.ts';
import { importCommand } from '#cli/commands/import.ts';
import { retryCommand } from '#cli/commands/import.ts';
import { limitsCommand } from '#cli/commands/limits.ts';
import { logsCommand } from '#cli/commands/logs.ts';
import { planCommand } from '#cli/commands/plan.ts';
import { pruneCommand } from '#cli/commands/prune.ts';
import { undeleteCommand } from '#cli/commands/undelete.ts';
import { queueCommand } from '#cli/commands/queue.ts';
import { rolloutCommands } from '#cli/commands/rollout.ts';
import { uninstallCommand } from '#cli/commands/uninstall.ts';
import { uploadCommand } from '#cli/commands/upload.ts';
import { verifyCommand } from '#cli/commands/verify.ts';
import { whyCommand } from '#cli/commands/why.ts';

/** `program`: what it was called by (program.ts). Default: `bullion`. */
type Called = Surroundings & { readonly program?: string };

export const runCommandLine = async (args: readonly string[], called: Called): Promise<ExitCode> => {
  const { program = 'bullion', signal } = called;
  const terminal = withProgramName(
    program,
    called.terminal,
    commands.map((known) => known.name),
  );
  const around = { terminal, signal };
  const { name, rest } = splitCommand(args);
  if (args.includes('--version') && name === undefined) return announceVersion(terminal);
  if (name === 'help') return explain(rest[0], terminal);
  if (name === undefined) return explain(undefined, terminal);
  const command = commands.find((known) => known.name === name);
  if (command === undefined) return refuse(name, terminal);
  try {
    const line = parseCommandLine(command, rest);
    if (line.values['help'] === true) return explain(command.name, terminal);
    const isQuiet = line.values['quiet'] === true;
    // What a program reads stays as it is.
    const isData = line.values['output'] !== undefined || command.name === 'completion';
    const out = (text: string): void => (isData ? called.terminal : terminal).out(text);
    return await start(command, line, { signal, terminal: { ...terminal, out, isQuiet } });
  } catch (error) {
    const code = complain(command, error, around);
    return around.signal.aborted ? exitCodes.interrupted : code;
  }
};

const refuse = (name: string, terminal: Terminal): ExitCode => {
  const meant = didYouMean(
    name,
    commands.map((known) => known.name),
  );
  terminal.err(`bullion: there is no command ${name}${meant}\nbullion --help lists them\n`);
  return exitCodes.usage;
};

const announceVersion = (terminal: Terminal): ExitCode => {
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
      signal.aborted ? 'bullion: interrupted; run the same command again to resume\n' : `bullion: ${wordsOf(error)}\n`,
    );
    return exitCodes.failed;
  }
  const prefix = terminal.hasColors === true ? '\u001B[31mbullion:\u001B[39m' : 'bullion:';
  terminal.err(`${prefix} ${serverMessageOf(error)}\n`);
  if (error instanceof InvalidInput) return complainOfInput(command, error, terminal);
  if (error instanceof Denied && 'all-namespaces' in command.options && error.message.endsWith(' at the cluster scope'))
    terminal.err('-n NAMESPACE lists one namespace, without -A\n');
  if (error.message.startsWith('Kubernetes API') && isUnreachable(error))
    terminal.err(
      'is the cluster running, and is it the one you mean? --kubeconfig, --context and --server say which\n',
    );
  return isNotFound(error) ? exitCodes.notFound : exitCodes.failed;
};

const complainOfInput = (command: Command, error: InvalidInput, terminal: Terminal): ExitCode => {
  const unmentioned = error.faults.filter(({ message }) => !error.message.includes(message));
  for (const { field, message } of unmentioned) terminal.err(`  ${field}: ${message}\n`);
  const isOurs = error.faults.length === 0;
  if (isOurs) terminal.err(`bullion ${command.name} --help says more\n`);
  return isOurs ? exitCodes.usage : exitCodes.failed;
};

/** The words of `--help`, from the commands' own descriptions. */
const indent = (rows: readonly (readonly string[])[]): string =>
  alignColumns(rows)
    .map((line) => `  ${line}\n`)
    .join('');

const optionRow = ([name, { short, value, help, oneOf }]: [string, OptionSpec]): readonly string[] => [
  `${short === undefined ? '    ' : `-${short}, `}--${name}${value === undefined ? '' : ` ${value}`}`,
  oneOf === undefined ? help : `${help}: ${oneOf.join(', ')}`,
];

const optionRows = (options: Options): string => indent(Object.entries<OptionSpec>(options).map(optionRow));

const helpOf = (command: Command): string => {
  const call = ['bullion', command.name, command.arguments, '[options]'].filter((word) => word !== '').join(' ');
  const more = command.more === undefined ? '' : `\n${command.more}\n`;
  return `${command.summary}\n\n  ${call}\n${more}\nOptions:\n${optionRows({ ...command.options, ...commonOptions })}`;
};

const overview = (commands: readonly Command[]): string => {
  const rows = commands.map(({ name, arguments: words, summary }) => [`${name} ${words}`, summary]);
  return `Golden images for virtual machines, from the command line.

  bullion <command> [options]
  bullion <command> --help
  bullion --version

${indent(rows)}
Every command takes:
${optionRows(commonOptions)}
Exit codes: ${exitCodes.done} done, ${exitCodes.failed} failed, ${exitCodes.usage} wrong command line, ${exitCodes.notFound} not found, ${exitCodes.timedOut} timed out, ${exitCodes.interrupted} interrupted.
`;
};

/** Every command, one line each, in the order help shows them. */
export const commands: readonly Command[] = [
  importCommand,
  uploadCommand,
  downloadCommand,
  diskCommand,
  imagesCommand,
  getCommand,
  dataSourcesCommand,
  whyCommand,
  logsCommand,
  explainCommand,
  doctorCommand,
  consumersCommand,
  outdatedCommand,
  exportCommand,
  retryCommand,
  deleteCommand,
  queueCommand,
  limitsCommand,
  eventsCommand,
  ...rolloutCommands,
  footprintCommand,
  pruneCommand,
  undeleteCommand,
  planCommand,
  backupsCommand,
  bundleCommand,
  verifyCommand,
  uninstallCommand,
  completionCommand(() => commands),
];
