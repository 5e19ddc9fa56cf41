// `npm run build`: bundles every function into dist/functions and prints the sizes. `npm run package`: the command line into dist/cli.
import { type Bundle, buildBundles, buildCli, bundleDir, cliDir } from '#infra/bundle/build.ts';

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
