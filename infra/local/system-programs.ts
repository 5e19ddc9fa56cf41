// Programs of the system that npm does not install. The demo and the tests check here that they are available.
import { spawn } from 'node:child_process';
import { existsSync } from 'node:fs';
import { delimiter, isAbsolute, join } from 'node:path';
import { InvalidInput, Unavailable } from '#shared/runtime/errors.ts';

export interface SystemProgram {
  /** A name to find in the search path, or the absolute path of a file in the package. */
  readonly program: string;
  /** Debian package. */
  readonly package: string;
}

export const qemuImg: SystemProgram = { program: 'qemu-img', package: 'qemu-utils' };
export const qemuSystem: SystemProgram = { program: 'qemu-system-x86_64', package: 'qemu-system-x86' };

interface Host {
  readonly isRoot: boolean;
  readonly hasApt: boolean;
  /** The value of PATH. */
  readonly path: string;
  /** Runs a command; rejects on failure. */
  readonly execute: (program: string, args: readonly string[]) => Promise<void>;
}

const isThere = ({ program }: SystemProgram, path: string): boolean =>
  isAbsolute(program) ? existsSync(program) : path.split(delimiter).some((folder) => existsSync(join(folder, program)));

const packagesOf = (programs: readonly SystemProgram[]): readonly string[] => [
  ...new Set(programs.map((one) => one.package)),
];

/** On Debian, as root. */
export const installCommand = (programs: readonly SystemProgram[]): string =>
  ['apt-get', ...installArgs, ...packagesOf(programs)].join(' ');

const installArgs = ['install', '-y', '--no-install-recommends'] as const;

/**
 * Installs missing programs if possible without interaction: as root, on Debian. Otherwise throws InvalidInput with the command to run. Throws
 * Unavailable if the installation did not help.
 */
export const ensurePrograms = async (
  programs: readonly SystemProgram[],
  say: (line: string) => void,
  host: Host,
): Promise<void> => {
  const missing = programs.filter((one) => !isThere(one, host.path));
  if (missing.length === 0) return;
  const names = missing.map(({ program }) => program).join(', ');
  const packages = packagesOf(missing);
  const command = installCommand(missing);
  if (!host.hasApt) throw new InvalidInput(`${names} missing: install the Debian packages ${packages.join(' ')}`);
  if (!host.isRoot) throw new InvalidInput(`${names} missing: sudo ${command}`);
  say(`${names} missing: ${command}`);
  await host.execute('apt-get', ['update']);
  await host.execute('apt-get', [...installArgs, ...packages]);
  const still = missing.filter((one) => !isThere(one, host.path));
  if (still.length > 0)
    throw new Unavailable(`still missing after ${command}: ${still.map((one) => one.program).join(', ')}`);
};

/** This machine. */
export const thisHost = (path: string): Host => ({
  isRoot: process.getuid?.() === 0,
  hasApt: existsSync('/usr/bin/apt-get'),
  path,
  execute,
});

/** Its output goes to standard error. */
const execute = (program: string, args: readonly string[]): Promise<void> =>
  new Promise((resolve, reject) => {
    const child = spawn(program, args, { stdio: ['ignore', 2, 2] });
    child.once('error', reject);
    child.once('exit', (code) => {
      if (code === 0) resolve();
      else reject(new Unavailable(`${program} ${args.join(' ')} ended with ${code}`));
    });
  });
