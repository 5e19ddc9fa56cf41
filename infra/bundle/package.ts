// The command line as a package without dependencies, and its manual page. Called by `npm run package` and tests.
import { cp, readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { type Command, exitCodes, type Options, type OptionSpec } from '#cli/command.ts';
import { commonOptions } from '#cli/options.ts';
import { commands } from '#cli/run.ts';
import { type Bundle, bundleAll, loadedLate, root } from './build.ts';
import type { Workers } from './plugin.ts';

// The manual page bullion(1), from what the commands say of themselves.

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

const manualOf = (commands: readonly Command[], version: string): string => `.TH BULLION 1 "" "bullion ${version}"
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

/** Output directory of `npm run package`. */
export const cliDir = join(root, 'dist', 'cli');

/** The command line as a package without dependencies: empties `outDir` and fills it for `npm publish`. */
export const buildCli = async (outDir: string = cliDir): Promise<readonly Bundle[]> => {
  await rm(outDir, { recursive: true, force: true });
  const workers: Workers = new Set();
  // Users may have an older version of Node than the functions.
  const target = 'node22';
  const main = await bundleAll([{ name: 'main', role: 'function', path: 'cli/main.ts' }], { outDir, workers, target });
  const late = await bundleAll(loadedLate(workers), { outDir, workers, target });
  await writeFile(join(outDir, 'bullion.mjs'), commandLauncher, { mode: 0o755 });
  const { version } = await readPackage();
  await writeFile(join(outDir, 'package.json'), await cliPackage());
  await writeFile(join(outDir, 'bullion.1'), manualOf(commands, version));
  for (const [from, to] of [
    ['LICENSE', 'LICENSE'],
    ['docs/cli.md', 'README.md'],
  ] as const)
    await cp(join(root, from), join(outDir, to));
  return [...main, ...late];
};

const cliPackage = async (): Promise<string> => {
  const { name, version, license } = await readPackage();
  const bin = { bullion: 'bullion.mjs', 'kubectl-bullion': 'bullion.mjs' };
  const description = 'Golden images for virtual machines on Kubernetes, from the command line';
  return `${JSON.stringify({ name, version, description, license, type: 'module', bin, man: 'bullion.1', engines: { node: '>=22.15' } }, undefined, 2)}\n`;
};

const readPackage = async (): Promise<PackageFile> =>
  JSON.parse(await readFile(join(root, 'package.json'), 'utf8')) as PackageFile;

interface PackageFile {
  readonly name: string;
  readonly version: string;
  readonly license: string;
}

/** An old version of Node would only report a missing export of a module. Keeps the code that V8 compiled for the next start. */
const commandLauncher = `#!/usr/bin/env node
import module from 'node:module';
const [major, minor] = process.versions.node.split('.').map(Number);
if (major < 22 || (major === 22 && minor < 15)) {
  process.stderr.write(\`bullion: Node \${process.versions.node} is too old: install Node 22.15 or newer\\n\`);
  process.exit(1);
}
module.enableCompileCache?.();
await import('./main.mjs');
`;
