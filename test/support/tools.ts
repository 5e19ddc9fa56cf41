// Programs that some tests need besides Node. A missing one skips those tests with a message.
import { spawnSync } from 'node:child_process';

const packages = {
  'qemu-img': 'qemu-utils',
  'qemu-io': 'qemu-utils',
  'qemu-system-x86_64': 'qemu-system-x86',
  xz: 'xz-utils',
  zstd: 'zstd',
  gpg: 'gnupg',
} as const;
export type Tool = keyof typeof packages;

const isInstalled = (tool: Tool): boolean => spawnSync(tool, ['--version'], { stdio: 'ignore' }).error === undefined;

/** Whether all tools are available; otherwise prints the command that installs the missing ones. For `describe.skipIf(!hasTools(…))`. */
export const hasTools = (...tools: readonly Tool[]): boolean => {
  const missing = [...new Set(tools.filter((tool) => !isInstalled(tool)).map((tool) => packages[tool]))];
  if (missing.length > 0) console.warn(`skipped: apt-get install -y ${missing.join(' ')}`);
  return missing.length === 0;
};

/** Runs a tool to its end; throws with its output on failure. */
export const runTool = (tool: string, args: readonly string[], input?: Buffer): Buffer => {
  const { status, stdout, stderr } = spawnSync(tool, args, { input, maxBuffer: 2 ** 30 });
  if (status !== 0) throw new Error(`${tool} ${args.join(' ')}: ${stderr?.toString() ?? 'not found'}`);
  return stdout;
};

/** Whether kubectl is available; prints a message if it is not. */
export const hasKubectl = (): boolean => {
  const isThere = spawnSync('kubectl', ['version', '--client'], { stdio: 'ignore' }).error === undefined;
  if (!isThere) console.warn('skipped: kubectl is not on the PATH');
  return isThere;
};
