// The manual page bullion(1), from what the commands say of themselves. Called by build.ts.
import { type Command, type OptionSpec, type Options, exitCodes } from '#cli/command.ts';
import { commonOptions } from '#cli/options.ts';

/** Text as roff reads it: no backslash, hyphen or leading dot that would mean something. */
const plain = (text: string): string =>
  text
    .replaceAll('\\', String.raw`\e`)
    .replaceAll('-', String.raw`\-`)
    .replaceAll(/^([.'])/gm, String.raw`\&$1`);

const paragraphs = (text: string): string => text.split('\n').map(plain).join('\n.PP\n');

const optionLines = ([name, { short, value, help, oneOf }]: [string, OptionSpec]): string => {
  const flags = [...(short === undefined ? [] : [`-${short}`]), `--${name}`].map((flag) => `\\fB${plain(flag)}\\fR`);
  const words = oneOf === undefined ? help : `${help}: ${oneOf.join(', ')}`;
  return `.TP\n${flags.join(', ')}${value === undefined ? '' : ` \\fI${plain(value)}\\fR`}\n${plain(words)}\n`;
};
const optionsOf = (options: Options): string => Object.entries<OptionSpec>(options).map(optionLines).join('');

const commandLines = ({ name, arguments: words, summary, more, options }: Command): string =>
  `.SS ${plain(`${name} ${words}`.trim())}\n${plain(summary)}\n${more === undefined ? '' : `.PP\n${paragraphs(more)}\n`}${optionsOf(options)}`;

const endings: Readonly<Record<keyof typeof exitCodes, string>> = {
  done: 'done',
  failed: 'failed, or refused by the cluster',
  usage: 'wrong command line',
  notFound: 'not found',
  timedOut: 'timed out',
  interrupted: 'interrupted with Ctrl-C',
};

export const manualOf = (
  commands: readonly Command[],
  version: string,
): string => `.TH BULLION 1 "" "bullion ${version}"
.SH NAME
bullion \\- golden images for virtual machines, from the command line
.SH SYNOPSIS
\\fBbullion\\fR \\fIcommand\\fR [\\fIarguments\\fR] [\\fIoptions\\fR]
.SH COMMANDS
${commands.map(commandLines).join('')}.SH OPTIONS
Every command takes:
${optionsOf(commonOptions)}.SH EXIT STATUS
${Object.entries(endings)
  .map(([name, words]) => `.TP\n${exitCodes[name as keyof typeof exitCodes]}\n${words}\n`)
  .join('')}.SH ENVIRONMENT
.TP
KUBECONFIG
kubeconfig file, where \\fB\\-\\-kubeconfig\\fR is not given
`;
