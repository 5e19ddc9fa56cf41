// The programs the demo stands on. Called by the demo.
import { execFile, spawn } from 'node:child_process';
import { existsSync } from 'node:fs';
import { promisify } from 'node:util';
import { InvalidInput, Unavailable } from '#shared/runtime/errors.ts';

export const run = promisify(execFile);

const isThere = (program: string): Promise<boolean> =>
  run(program, ['--version']).then(
    () => true,
    () => false,
  );

const installCommand = 'apt-get install -y --no-install-recommends qemu-utils';

/** Sees that qemu-img is there: installs it where that is possible without asking, else throws InvalidInput naming the command that does. */
export const ensureQemuImg = async (say: (line: string) => void): Promise<void> => {
  if (await isThere('qemu-img')) return;
  const isRoot = process.getuid?.() === 0;
  if (!isRoot || !existsSync('/etc/debian_version')) throw new InvalidInput(`qemu-img is missing: ${adviceFor()}`);
  say(`qemu-img is missing: ${installCommand}`);
  await execute('apt-get', ['update']);
  const [program = '', ...args] = installCommand.split(' ');
  await execute(program, args);
  if (!(await isThere('qemu-img'))) throw new Unavailable(`qemu-img is still missing after ${installCommand}`);
};

const adviceFor = (): string => {
  if (process.platform === 'darwin') return 'brew install qemu';
  if (existsSync('/etc/debian_version')) return `sudo ${installCommand}`;
  if (existsSync('/etc/fedora-release')) return 'sudo dnf install qemu-img';
  return 'install the package that holds qemu-img (qemu-utils on Debian and Ubuntu, qemu-img on Fedora)';
};

/** Its output goes to standard error. Throws Unavailable when it fails. */
const execute = (program: string, args: readonly string[]): Promise<void> =>
  new Promise((resolve, reject) => {
    const child = spawn(program, args, { stdio: ['ignore', 2, 2] });
    child.once('error', reject);
    child.once('exit', (code) => {
      if (code === 0) resolve();
      else reject(new Unavailable(`${program} ${args.join(' ')} ended with ${code}`));
    });
  });
