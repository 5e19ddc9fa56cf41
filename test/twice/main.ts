// `npm run test:twice [-- --report <file>] [<part of a file's path> …]`: tests as `npm test` runs them, and what failed once more, since a shared
// machine can make a bounded wait too short: what fails twice has failed. A file is run again as a whole, in a process of its own and with no other
// beside it. Tests of one file build on each other, and vitest's own `--retry` would meet what the first try left behind: objects of the same name,
// counters, a cluster that `beforeAll` starts but once. `--report`: counts and what
// failed, in the form of vitest's reporter `json`.
import { writeFileSync } from 'node:fs';
import { relative } from 'node:path';
import { parseArgs } from 'node:util';
import type { Report } from '#test/counts/counts.ts';
import { type TestCase, type TestModule, type TestUserConfig, startVitest } from 'vitest/node';

interface Pass {
  readonly modules: readonly TestModule[];
  /** Files during which an error came up that no test had thrown; undefined where nobody knows the file. */
  readonly orphans: readonly (string | undefined)[];
}

const runPass = async (files: readonly string[], options: TestUserConfig = {}): Promise<Pass> => {
  const vitest = await startVitest('test', [...files], { run: true, watch: false, ...options });
  const errors = vitest.state.getUnhandledErrors() as readonly { readonly VITEST_TEST_PATH?: string }[];
  return { modules: vitest.state.getTestModules(), orphans: errors.map((error) => error.VITEST_TEST_PATH) };
};

const isGood = (module: TestModule): boolean => module.ok() && !['pending', 'queued'].includes(module.state());

/** Files that have to be run again; `lost`: something is wrong that belongs to none. */
const toRunAgain = ({ modules, orphans }: Pass): { readonly files: readonly string[]; readonly lost: boolean } => {
  const bad = modules.filter((module) => !isGood(module)).map(({ moduleId }) => moduleId);
  const files = [...new Set([...bad, ...orphans.filter((file) => file !== undefined)])];
  return { files, lost: modules.length === 0 || orphans.includes(undefined) };
};

const statesOf = (modules: readonly TestModule[]) => {
  const states = modules.flatMap((module) =>
    [...module.children.allTests()].map((test: TestCase) => test.result().state),
  );
  const count = (state: string): number => states.filter((one) => one === state).length;
  return {
    numPassedTests: count('passed'),
    numFailedTests: count('failed'),
    numPendingTests: count('skipped'),
    numTodoTests: 0,
  };
};

/** Of files that failed. One without a failed test could not begin: test/counts counts it, and says so. */
const failedResults = (modules: readonly TestModule[]) =>
  modules
    .filter((module) => !isGood(module))
    .map((module) => {
      const failed = [...module.children.allTests('failed')];
      const assertionResults = failed.map(({ fullName }) => ({ fullName, status: 'failed' }));
      return { name: module.moduleId, status: 'failed', assertionResults };
    });

const reportOf = (modules: readonly TestModule[], ranAgain: readonly string[]): Report => ({
  ...statesOf(modules),
  testResults: failedResults(modules),
  ranAgain,
});

const { values, positionals } = parseArgs({ allowPositionals: true, options: { report: { type: 'string' } } });
const first = await runPass(positionals);
let { files, lost } = toRunAgain(first);
const ranAgain = lost ? [] : files;
let modules = first.modules;
if (files.length > 0 && !lost) {
  console.log(`failed once, and run again: ${files.map((file) => relative('.', file)).join(' ')}`);
  const second = await runPass(files, { maxWorkers: 1, isolate: true });
  modules = [...modules.filter(({ moduleId }) => !files.includes(moduleId)), ...second.modules];
  ({ files, lost } = toRunAgain(second));
}
if (values.report !== undefined) writeFileSync(values.report, JSON.stringify(reportOf(modules, ranAgain)));
process.exit(files.length > 0 || lost ? 1 : 0);
