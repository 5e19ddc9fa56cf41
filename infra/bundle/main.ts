// `npm run build`: bundles every function into dist/functions and prints the sizes. `npm run package`: the command line into dist/cli; with
// `-- --executables` also as executables that need no Node.
import { dirname, join } from 'node:path';
import { type Bundle, buildBundles, bundleDir } from '#infra/bundle/build.ts';
import { buildExecutable, platformsToMake, thisPlatform } from '#infra/bundle/executable.ts';
import { buildCli, cliDir } from '#infra/bundle/package.ts';

const kib = (bytes: number): string => `${Math.ceil(bytes / 1024)} KiB`;

const packageOf = (path: string): string => /node_modules\/((?:@[^/]+\/)?[^/]+)/.exec(path)?.[1] ?? 'bullion';

const heaviest = ({ inputs }: Bundle): string => {
  const byPackage = new Map<string, number>();
  for (const [path, bytes] of Object.entries(inputs)) {
    byPackage.set(packageOf(path), (byPackage.get(packageOf(path)) ?? 0) + bytes);
  }
  const sorted = [...byPackage].toSorted(([, left], [, right]) => right - left);
  return sorted
    .slice(0, 4)
    .map(([name, bytes]) => `${name} ${kib(bytes)}`)
    .join(', ');
};

const isCli = process.argv.includes('--cli');
const bundles = await (isCli ? buildCli() : buildBundles());
for (const bundle of bundles) {
  process.stdout.write(`${bundle.name.padEnd(22)}${kib(bundle.bytes).padStart(10)}   ${heaviest(bundle)}\n`);
}
process.stdout.write(
  isCli
    ? `in ${cliDir}; install it with: npm install --global ${cliDir}\n`
    : `in ${bundleDir}; one starts with: node ${bundleDir}/start.mjs <function>\n`,
);
if (process.argv.includes('--executables')) {
  const outDir = join(dirname(cliDir), 'executables');
  for (const platform of platformsToMake) process.stdout.write(`${await buildExecutable(cliDir, platform, outDir)}\n`);
  if (!thisPlatform.startsWith('darwin')) process.stdout.write('run it on macOS for an executable of macOS\n');
}
