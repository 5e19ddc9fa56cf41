// What became of whole runs of vitest, from their JSON reports: how many tests passed, failed and were skipped, and which failed. Called by main.ts, which
// `.ci/run` ends with, and by `npm run test:real`.
import { relative } from 'node:path';

/** Of what vitest's JSON reporter writes, the part that is counted. */
export interface Report {
  readonly numPassedTests: number;
  readonly numFailedTests: number;
  readonly numPendingTests: number;
  readonly numTodoTests: number;
  /** Paths of files that failed once and were run again; only `test:twice` knows them. */
  readonly ranAgain?: readonly string[];
  readonly testResults: readonly {
    /** Path of the file. */
    readonly name: string;
    readonly status: string;
    /** Why the file as a whole failed; empty where its tests say it. */
    readonly message?: string;
    readonly assertionResults: readonly { readonly fullName: string; readonly status: string }[];
  }[];
}

type Suite = Report['testResults'][number];

const failedTests = ({ assertionResults }: Suite) => assertionResults.filter(({ status }) => status === 'failed');

/** It could not be read, or its preparations failed: none of its tests says so, and those it has count as skipped. */
const couldNotBegin = (suite: Suite): boolean => suite.status === 'failed' && failedTests(suite).length === 0;

export interface Counts {
  readonly passed: number;
  readonly failed: number;
  readonly skipped: number;
}

/** A suite that could not begin counts as one failure. */
export const countsOf = (reports: readonly Report[]): Counts => {
  const sum = (count: (report: Report) => number): number => reports.reduce((all, report) => all + count(report), 0);
  return {
    passed: sum(({ numPassedTests }) => numPassedTests),
    failed: sum(({ numFailedTests, testResults }) => numFailedTests + testResults.filter(couldNotBegin).length),
    skipped: sum(({ numPendingTests, numTodoTests }) => numPendingTests + numTodoTests),
  };
};

export const toWords = ({ passed, failed, skipped }: Counts): string =>
  `${passed} passed, ${failed} failed, ${skipped} skipped`;

/** A line for each test that failed and each suite that could not begin; files as observed from `root`. */
export const failuresOf = (reports: readonly Report[], root: string): readonly string[] =>
  reports
    .flatMap(({ testResults }) => testResults)
    .flatMap((suite) => {
      const file = relative(root, suite.name);
      const [why = ''] = (suite.message ?? '').split('\n');
      return couldNotBegin(suite)
        ? [`${file}: could not begin${why === '' ? '' : `: ${why}`}`]
        : failedTests(suite).map(({ fullName }) => `${file}: ${fullName.trim()}`);
    });

/** A line for each file that failed at first, whatever became of it: a fault to be mended, not one that went away. */
export const ranAgainOf = (reports: readonly Report[], root: string): readonly string[] =>
  reports.flatMap(({ ranAgain = [] }) => ranAgain.map((file) => `failed once: ${relative(root, file)}`));
