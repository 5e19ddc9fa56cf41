// Debian packages with all dependencies, unpacked into a folder. They are not installed: no script of a package runs. Called by image.ts.
import { execFile } from 'node:child_process';
import { createHash } from 'node:crypto';
import { mkdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';

const run = promisify(execFile);
const bytesOfOutput = 64 * 2 ** 20;

export interface DebianPackage {
  readonly name: string;
  readonly version: string;
  readonly architecture: string;
  readonly sha256: string;
}

/** The packages and their dependencies, by name. Throws for a package that apt does not know. */
const closureOf = async (names: readonly string[]): Promise<readonly string[]> => {
  const unwanted = ['recommends', 'suggests', 'conflicts', 'breaks', 'replaces', 'enhances'].map(
    (name) => `--no-${name}`,
  );
  const { stdout } = await run('apt-cache', ['depends', '--recurse', ...unwanted, ...names], {
    maxBuffer: bytesOfOutput,
  });
  const found = stdout.split('\n').filter((line) => /^[a-z0-9]/.test(line));
  // Packages that only configure a running system, which this is not.
  return [...new Set(found)].filter((name) => !/^(debconf|cdebconf|perl-base|dpkg|tar)/.test(name)).toSorted();
};

/** Downloads packages missing in `cacheDir`, and unpacks all of them into `rootDir`. */
export const unpackPackages = async (
  names: readonly string[],
  { rootDir, cacheDir }: { readonly rootDir: string; readonly cacheDir: string },
): Promise<readonly DebianPackage[]> => {
  await mkdir(cacheDir, { recursive: true });
  const closure = await closureOf(names);
  await run('apt-get', ['download', ...closure], { cwd: cacheDir, maxBuffer: bytesOfOutput });
  // The cache may contain earlier versions as well: only those that apt would download now are used.
  const { stdout: uris } = await run('apt-get', ['download', '--print-uris', ...closure], { maxBuffer: bytesOfOutput });
  const files = [...uris.matchAll(/^'[^']*' (\S+)/gm)].map(([, file = '']) => file).toSorted();
  const packages: DebianPackage[] = [];
  for (const file of files) {
    const path = join(cacheDir, file);
    await run('dpkg-deb', ['-x', path, rootDir]);
    const { stdout } = await run('dpkg-deb', ['-W', '--showformat=${Package} ${Version} ${Architecture}', path]);
    const [name = '', version = '', architecture = ''] = stdout.split(' ');
    packages.push({
      name,
      version,
      architecture,
      sha256: createHash('sha256')
        .update(await readFile(path))
        .digest('hex'),
    });
  }
  return packages;
};
