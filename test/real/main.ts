// `npm run test:real [-- <part of a file's path> …]`: every test that can run on a real control plane, on one, a file at a time. Builds the
// control plane first where there is a Go toolchain; where there is neither, it says so and runs nothing. Ends with the counts. With
// `--reports <folder>` a report in JSON is left there for each file, and a file that fails is run once more.
import { spawn, spawnSync } from 'node:child_process';
import { existsSync, globSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { type Report, countsOf, toWords } from '#test/counts/counts.ts';

/** Quick to tell first, long last. */
const files = [
  'local-cluster/real-api-server/server.test.ts',
  'infra/generate/installed.test.ts',
  'infra/generate/applied.test.ts',
  'infra/generate/rotation.test.ts',
  'local-cluster/controllers/controllers.test.ts',
  'local-cluster/envtest/knative/differential.test.ts',
  'local-cluster/envtest/knative/queue-proxy.test.ts',
  'local-cluster/envtest/knative/whole.test.ts',
  'local-cluster/conformance/real.test.ts',
  ...globSync('test/flows/*.test.ts').toSorted(),
];

/** Folder of the binaries; undefined where they can neither be found nor built, which has been said by then. */
const ensureAssets = (): string | undefined => {
  const { status, stdout } = spawnSync(process.execPath, ['local-cluster/envtest/main.ts'], {
    stdio: ['ignore', 'pipe', 'inherit'],
    encoding: 'utf8',
  });
  if (status !== 0) process.exit(1);
  return /^KUBEBUILDER_ASSETS=(.+)$/m.exec(stdout)?.[1];
};

const runProgram = async (args: readonly string[], env: NodeJS.ProcessEnv): Promise<boolean> => {
  const child = spawn(process.execPath, args, { stdio: 'inherit', env });
  return (await new Promise((resolve) => child.once('exit', resolve))) === 0;
};

const once = (file: string, report: string): readonly string[] => [
  'node_modules/vitest/vitest.mjs',
  'run',
  file,
  '--reporter=default',
  '--reporter=json',
  `--outputFile.json=${report}`,
];
const twice = (file: string, report: string): readonly string[] => ['test/twice/main.ts', '--report', report, file];

/** A file that died has left no report; it is among those that failed. */
const countsIn = (paths: readonly string[]): string => {
  const reports = paths.filter((path) => existsSync(path));
  return toWords(countsOf(reports.map((path) => JSON.parse(readFileSync(path, 'utf8')) as Report)));
};

const main = async (wanted: readonly string[], kept: string | undefined): Promise<number> => {
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
  const folder = kept ?? mkdtempSync(join(tmpdir(), 'bullion-real-'));
  const reports = selected.map((_, index) => join(folder, `real-${index}.json`));
  const failed: string[] = [];
  for (const [index, file] of selected.entries()) {
    const program = kept === undefined ? once : twice;
    if (!(await runProgram(program(file, reports[index] ?? ''), env))) failed.push(file);
  }
  const ofFiles = `${selected.length - failed.length} of ${selected.length} files passed on ${assets}`;
  console.log(`test:real: ${countsIn(reports)}; ${ofFiles}`);
  if (kept === undefined) rmSync(folder, { recursive: true });
  for (const file of failed) console.log(`  failed: ${file}`);
  return failed.length === 0 ? 0 : 1;
};

const { values, positionals } = parseArgs({ allowPositionals: true, options: { reports: { type: 'string' } } });
process.exit(await main(positionals, values.reports));
