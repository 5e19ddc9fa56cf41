// The command line as one executable for each platform, with Node inside (Node's single executable applications). Called by `npm run package`.
import { execFile } from 'node:child_process';
import { createHash } from 'node:crypto';
import { copyFile, mkdir, mkdtemp, readFile, readdir, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { arch, execPath, platform } from 'node:process';
import { promisify } from 'node:util';
import { inject } from 'postject';

const run = promisify(execFile);

/** `<os>-<cpu>`, as in `process.platform` and `process.arch`. */
export const thisPlatform = `${platform}-${arch}`;

/** Those that Linux can make. An executable of macOS has to be signed there, so it is made there. */
export const platformsToMake: readonly string[] =
  platform === 'linux' ? ['linux-x64', 'linux-arm64'] : platform === 'darwin' ? [thisPlatform] : [];

/** What Node looks for in its own file to know that something was put in. */
const sentinel = 'NODE_SEA_FUSE_fce680ab2cc467b6e072b8b5df1996b2';

/**
 * Starts from the files of the package, which it unpacks once per version: into the user's cache, or where that cannot be written into a directory of
 * this run. A module cannot be imported from inside the executable. `digest`: of all files, so that no other version's are taken.
 */
const launcher = (files: readonly string[], digest: string): string => `const fs = require('node:fs');
const os = require('node:os');
const path = require('node:path');
const { getAsset } = require('node:sea');
const { pathToFileURL } = require('node:url');
const vm = require('node:vm');
const unpack = (folder) => {
  for (const name of ${JSON.stringify(files)}) fs.writeFileSync(path.join(folder, name), Buffer.from(getAsset(name)));
  return folder;
};
const unpackOnce = () => {
  const cache = path.join(process.env.XDG_CACHE_HOME || path.join(os.homedir(), '.cache'), 'bullion');
  const folder = path.join(cache, '${digest}');
  if (fs.existsSync(folder)) return folder;
  fs.mkdirSync(cache, { recursive: true, mode: 0o700 });
  const made = unpack(fs.mkdtempSync(path.join(cache, 'new-')));
  try {
    fs.renameSync(made, folder);
  } catch (error) {
    if (!fs.existsSync(folder)) throw error;
    fs.rmSync(made, { recursive: true });
  }
  return folder;
};
const unpackForThisRun = () => {
  const folder = unpack(fs.mkdtempSync(path.join(os.tmpdir(), 'bullion-')));
  process.on('exit', () => fs.rmSync(folder, { recursive: true, force: true }));
  return folder;
};
let folder;
try {
  folder = unpackOnce();
} catch {
  folder = unpackForThisRun();
}
require('node:module').enableCompileCache(path.join(folder, 'code'));
const main = JSON.stringify(pathToFileURL(path.join(folder, 'main.mjs')).href);
const importModuleDynamically = vm.constants.USE_MAIN_CONTEXT_DEFAULT_LOADER;
new vm.Script('import(' + main + ')', { importModuleDynamically }).runInThisContext();
`;

const digestOf = async (folder: string, files: readonly string[]): Promise<string> => {
  const hash = createHash('sha256');
  for (const file of files) hash.update(`${file}\0`).update(await readFile(join(folder, file)));
  return hash.digest('hex').slice(0, 16);
};

/** What is put into Node: the same for every platform. */
const prepare = async (packageDir: string, workDir: string): Promise<Buffer> => {
  const files = (await readdir(packageDir)).filter((name) => name.endsWith('.mjs') && name !== 'bullion.mjs');
  const at = (name: string): string => join(workDir, name);
  const [main, output, config] = [at('main.cjs'), at('blob'), at('config.json')];
  await writeFile(main, launcher(files.toSorted(), await digestOf(packageDir, files.toSorted())));
  const assets = Object.fromEntries(files.map((name) => [name, join(packageDir, name)]));
  const execArgv = ['--disable-warning=ExperimentalWarning'];
  await writeFile(config, JSON.stringify({ main, output, assets, execArgv, disableExperimentalSEAWarning: true }));
  await run(execPath, ['--experimental-sea-config', config]);
  return readFile(output);
};

/** Path of the Node of a platform: the running one, or that of the same version from its package. */
const nodeOf = async (target: string, workDir: string): Promise<string> => {
  if (target === thisPlatform) return execPath;
  const wanted = `node-${target}@${process.versions.node.split('.')[0]}`;
  const { stdout } = await run('npm', ['pack', '--silent', '--pack-destination', workDir, wanted]);
  const folder = join(workDir, target);
  await mkdir(folder);
  await run('tar', ['-xzf', join(workDir, stdout.trim()), '-C', folder]);
  return join(folder, 'package', 'bin', 'node');
};

/** Makes `<outDir>/bullion-<platform>` from the package that `buildCli` made in `packageDir`. Throws what the tools say. */
export const buildExecutable = async (packageDir: string, target: string, outDir: string): Promise<string> => {
  const workDir = await mkdtemp(join(tmpdir(), 'bullion-executable-'));
  try {
    const blob = await prepare(packageDir, workDir);
    const file = join(outDir, `bullion-${target}`);
    await mkdir(outDir, { recursive: true });
    await copyFile(await nodeOf(target, workDir), file);
    const isMac = target.startsWith('darwin');
    if (isMac) await run('codesign', ['--remove-signature', file]);
    const segment = isMac ? { machoSegmentName: 'NODE_SEA' } : {};
    await inject(file, 'NODE_SEA_BLOB', blob, { sentinelFuse: sentinel, ...segment });
    if (isMac) await run('codesign', ['--sign', '-', file]);
    return file;
  } finally {
    await rm(workDir, { recursive: true, force: true });
  }
};
