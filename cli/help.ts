// The words of `--help`, from the commands' own descriptions.
import { type Command, type OptionSpec, type Options, exitCodes } from '#cli/command.ts';
import { alignColumns } from '#cli/table.ts';
import { commonOptions } from '#cli/options.ts';

const indent = (rows: readonly (readonly string[])[]): string =>
  alignColumns(rows)
    .map((line) => `  ${line}\n`)
    .join('');

const optionRow = ([name, { short, value, help, oneOf }]: [string, OptionSpec]): readonly string[] => [
  `${short === undefined ? '    ' : `-${short}, `}--${name}${value === undefined ? '' : ` ${value}`}`,
  oneOf === undefined ? help : `${help}: ${oneOf.join(', ')}`,
];

const optionRows = (options: Options): string => indent(Object.entries<OptionSpec>(options).map(optionRow));

export const helpOf = (command: Command): string => {
  const call = ['bullion', command.name, command.arguments, '[options]'].filter((word) => word !== '').join(' ');
  const more = command.more === undefined ? '' : `\n${command.more}\n`;
  return `${command.summary}\n\n  ${call}\n${more}\nOptions:\n${optionRows({ ...command.options, ...commonOptions })}`;
};

export const overview = (commands: readonly Command[]): string => {
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
