// `npm run test:real [-- <part of a file's path> …]`: every test that can run on a real control plane, on one, a file at a time. Builds the
// control plane first where there is a Go toolchain; where there is neither, it says so and runs nothing.
import { spawn, spawnSync } from 'node:child_process';
import { globSync } from 'node:fs';

/** Quick to tell first, long last. */
const files = [
  'infra/local/real-api-server/server.test.ts',
  'infra/generate/installed.test.ts',
  'infra/local/controllers/controllers.test.ts',
  'infra/envtest/knative/differential.test.ts',
  'test/conformance/real.test.ts',
  ...globSync('test/flows/*.test.ts').toSorted(),
];

/** Folder of the binaries; undefined where they can neither be found nor built, which has been said by then. */
const ensureAssets = (): string | undefined => {
  const { status, stdout } = spawnSync(process.execPath, ['infra/envtest/main.ts'], {
    stdio: ['ignore', 'pipe', 'inherit'],
    encoding: 'utf8',
  });
  if (status !== 0) process.exit(1);
  return /^KUBEBUILDER_ASSETS=(.+)$/m.exec(stdout)?.[1];
};

const runFile = async (file: string, env: NodeJS.ProcessEnv): Promise<boolean> => {
  const child = spawn(process.execPath, ['node_modules/vitest/vitest.mjs', 'run', file], { stdio: 'inherit', env });
  return (await new Promise((resolve) => child.once('exit', resolve))) === 0;
};

const main = async (wanted: readonly string[]): Promise<number> => {
  const selected = files.filter((file) => wanted.length === 0 || wanted.some((part) => file.includes(part)));
  if (selected.length === 0) {
    console.error(`test:real: ${wanted.join(' ')} names none of\n  ${files.join('\n  ')}`);
    return 1;
  }
  const assets = ensureAssets();
  if (assets === undefined) {
    console.log('test:real: skipped, there is no real control plane: set KUBEBUILDER_ASSETS, or run npm run envtest');
    return 0;
  }
  const env = { ...process.env, KUBEBUILDER_ASSETS: assets, BULLION_TEST_APISERVER: 'real' };
  const failed: string[] = [];
  for (const file of selected) if (!(await runFile(file, env))) failed.push(file);
  console.log(`test:real: ${selected.length - failed.length} of ${selected.length} files passed on ${assets}`);
  for (const file of failed) console.log(`  failed: ${file}`);
  return failed.length === 0 ? 0 : 1;
};

process.exit(await main(process.argv.slice(2)));
