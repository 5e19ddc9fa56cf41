// `npm run test:real [-- <part of a file's path> …]`: every test that can run on a real control plane, on one, a file at a time. Builds the
// control plane first where there is a Go toolchain; where there is neither, it says so and runs nothing. `--ci <folder>` is for .ci/run.
import { spawn, spawnSync } from 'node:child_process';
import { globSync } from 'node:fs';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { findAssets } from '#infra/envtest/assets.ts';

/** Quick to tell first, long last. */
const files = [
  'infra/local/real-api-server/server.test.ts',
  'infra/generate/installed.test.ts',
  'infra/local/controllers/controllers.test.ts',
  'infra/envtest/knative/differential.test.ts',
  'test/conformance/real.test.ts',
  ...globSync('test/flows/*.test.ts').toSorted(),
];

/** What CI has time for beside `npm test`, which runs the first of the files above on a real control plane wherever there is one. */
const chosen = ['flows/lifecycle', 'flows/failures', 'flows/outages', 'flows/golden'];

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    /** Folder for vitest's reports: runs the chosen files, none of which it builds anything for, and a file that failed once more. */
    ci: { type: 'string' },
  },
});

/** Folder of the binaries; undefined where they can neither be found nor built, which has been said by then. */
const ensureAssets = (): string | undefined => {
  const { status, stdout } = spawnSync(process.execPath, ['infra/envtest/main.ts'], {
    stdio: ['ignore', 'pipe', 'inherit'],
    encoding: 'utf8',
  });
  if (status !== 0) process.exit(1);
  return /^KUBEBUILDER_ASSETS=(.+)$/m.exec(stdout)?.[1];
};

const runFile = async (file: string, env: NodeJS.ProcessEnv, options: readonly string[]): Promise<boolean> => {
  const args = ['node_modules/vitest/vitest.mjs', 'run', file, ...options];
  const child = spawn(process.execPath, args, { stdio: 'inherit', env });
  return (await new Promise((resolve) => child.once('exit', resolve))) === 0;
};

/** A machine that is shared can make a start or a wait too short: what fails twice has failed. The second report takes the first one's place. */
const runFileInCi = async (file: string, env: NodeJS.ProcessEnv, report: string): Promise<boolean> => {
  const options = ['--retry=1', '--reporter=default', '--reporter=json', `--outputFile.json=${report}`];
  return (await runFile(file, env, options)) || (await runFile(file, env, options));
};

const main = async (wanted: readonly string[], ciFolder: string | undefined): Promise<number> => {
  const selected = files.filter((file) => wanted.length === 0 || wanted.some((part) => file.includes(part)));
  if (selected.length === 0) {
    console.error(`test:real: ${wanted.join(' ')} names none of\n  ${files.join('\n  ')}`);
    return 1;
  }
  const assets = ciFolder === undefined ? ensureAssets() : findAssets(process.env);
  if (assets === undefined) {
    console.log('test:real: skipped, there is no real control plane: set KUBEBUILDER_ASSETS, or run npm run envtest');
    return 0;
  }
  const env = { ...process.env, KUBEBUILDER_ASSETS: assets, BULLION_TEST_APISERVER: 'real' };
  const failed: string[] = [];
  for (const [index, file] of selected.entries()) {
    const isGood =
      ciFolder === undefined
        ? await runFile(file, env, [])
        : await runFileInCi(file, env, join(ciFolder, `real-${index}.json`));
    if (!isGood) failed.push(file);
  }
  console.log(`test:real: ${selected.length - failed.length} of ${selected.length} files passed on ${assets}`);
  for (const file of failed) console.log(`  failed: ${file}`);
  return failed.length === 0 ? 0 : 1;
};

process.exit(await main(values.ci === undefined ? positionals : chosen, values.ci));
