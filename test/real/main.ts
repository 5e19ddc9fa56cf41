// `npm run test:real [-- <part of a file's path> …]`: runs every test that can run on a real control plane, on a real one, file by file. Builds the
// control plane first if there is a Go toolchain; if there is neither, it says so and runs nothing. Prints the counts at the end. With
// `--reports <folder>` a JSON report of each file is written there. `--proof`: runs what CI runs on a real control plane, and writes `proof.json` when
// all of it has passed; a second run for the same inputs repeats only the files that had not passed. `--proven`: runs nothing; reports whether the proof applies to the current files, and exits with 1 if it does not.
import { spawn, spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { type Counts, type Report, countsOf, toWords } from '#test/counts/counts.ts';
import { allFiles, proofFiles } from '#test/real/files.ts';
import { digestOfInputs, readProof, writeProof } from '#test/real/proof.ts';

/** Folder of the binaries; undefined if they can neither be found nor built, which has been reported then. */
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

/** A file that crashed has written no report; it counts as failed. */
const countsIn = (paths: readonly string[]): Counts => {
  const reports = paths.filter((path) => existsSync(path));
  return countsOf(reports.map((path) => JSON.parse(readFileSync(path, 'utf8')) as Report));
};

/** Of a run that was interrupted, or in which another file failed. */
const hasPassed = (report: string): boolean => {
  const { failed, skipped, passed } = countsIn([report]);
  return passed > 0 && failed === 0 && skipped === 0;
};

interface Wanted {
  readonly parts: readonly string[];
  readonly isProof: boolean;
  /** Folder for reports. */
  readonly reports: string | undefined;
}

/** Reports of these inputs, kept until all files have passed. */
const proofFolder = (): string => {
  const folder = join('.cache', 'proof', digestOfInputs().slice(0, 16));
  mkdirSync(folder, { recursive: true });
  return folder;
};

const runAll = async (selected: readonly string[], assets: string, { isProof, reports: wanted }: Wanted) => {
  const folder = wanted ?? (isProof ? proofFolder() : mkdtempSync(join(tmpdir(), 'bullion-real-')));
  const env = { ...process.env, KUBEBUILDER_ASSETS: assets, BULLION_TEST_APISERVER: 'real' };
  const reports = selected.map((file) => join(folder, `${file.replaceAll('/', '-')}.json`));
  const failed: string[] = [];
  for (const [index, file] of selected.entries())
    if (!hasPassed(reports[index] ?? '') && !(await runProgram(once(file, reports[index] ?? ''), env)))
      failed.push(file);
  const counts = countsIn(reports);
  if (wanted === undefined && (failed.length === 0 || !isProof)) rmSync(folder, { recursive: true });
  return { failed, counts };
};

const main = async (wanted: Wanted): Promise<number> => {
  const { parts, isProof } = wanted;
  const files = isProof ? proofFiles : allFiles;
  const selected = files.filter((file) => parts.length === 0 || parts.some((part) => file.includes(part)));
  if (selected.length === 0) {
    console.error(`test:real: ${parts.join(' ')} names none of\n  ${files.join('\n  ')}`);
    return 1;
  }
  const assets = ensureAssets();
  if (assets === undefined) {
    console.log('test:real: skipped, there is no real control plane: set KUBEBUILDER_ASSETS, or run npm run envtest');
    return 0;
  }
  const { failed, counts } = await runAll(selected, assets, wanted);
  console.log(
    `test:real: ${toWords(counts)}; ${selected.length - failed.length} of ${selected.length} files passed on ${assets}`,
  );
  for (const file of failed) console.log(`  failed: ${file}`);
  const isWhole = parts.length === 0 && failed.length === 0 && counts.skipped === 0;
  if (isProof && isWhole) writeProof(counts.passed);
  return failed.length === 0 ? 0 : 1;
};

/** Exit code. */
const sayWhetherProven = (): number => {
  const proof = readProof();
  const word =
    proof === undefined
      ? 'not proven on a real control plane since something of it has changed (test/real/proof.ts)'
      : `${proof.passed} tests passed on a real control plane, and nothing they depend on has changed since`;
  console.log(`test:real: ${word}`);
  return proof === undefined ? 1 : 0;
};

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    reports: { type: 'string' },
    proof: { type: 'boolean', default: false },
    proven: { type: 'boolean', default: false },
  },
});
process.exit(
  values.proven
    ? sayWhetherProven()
    : await main({ parts: positionals, isProof: values.proof, reports: values.reports }),
);
