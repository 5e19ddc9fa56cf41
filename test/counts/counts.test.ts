// The end of `.ci/run`, over reports as vitest writes them.
import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { Report } from '#test/counts/counts.ts';

const root = process.cwd();
const test = (fullName: string, status: string) => ({ fullName, status });

/** Two files: one with a failure among its tests. */
const whole: Report = {
  numPassedTests: 3,
  numFailedTests: 1,
  numPendingTests: 2,
  numTodoTests: 1,
  testResults: [
    { name: join(root, 'shared/a.test.ts'), status: 'passed', message: '', assertionResults: [test(' a', 'passed')] },
    {
      name: join(root, 'shared/b.test.ts'),
      status: 'failed',
      message: '',
      assertionResults: [test(' b keeps the image', 'failed'), test(' b names it', 'passed')],
    },
  ],
};
const nothing: Report = {
  numPassedTests: 0,
  numFailedTests: 0,
  numPendingTests: 0,
  numTodoTests: 0,
  testResults: [],
};
/** It could not be read. */
const unread: Report = {
  ...nothing,
  testResults: [
    {
      name: join(root, 'test/flows/c.test.ts'),
      status: 'failed',
      message: "Cannot find module './gone.ts'\nRequire stack:",
      assertionResults: [],
    },
  ],
};
/** What comes before its tests failed. */
const unprepared: Report = {
  ...nothing,
  numPendingTests: 2,
  testResults: [
    {
      name: join(root, 'test/flows/d.test.ts'),
      status: 'failed',
      message: '',
      assertionResults: [test(' d one', 'skipped'), test(' d two', 'skipped')],
    },
  ],
};

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'bullion-counts-'));
});
afterEach(() => rmSync(folder, { recursive: true }));

const linesOf = (reports: Readonly<Record<string, Report>>, status = '0'): readonly string[] => {
  for (const [name, report] of Object.entries(reports)) writeFileSync(join(folder, name), JSON.stringify(report));
  const { stdout, stderr } = spawnSync(process.execPath, ['test/counts/main.ts', folder, '--status', status], {
    encoding: 'utf8',
  });
  expect(stderr).toBe('');
  return stdout.trimEnd().split('\n');
};

describe('the end of a run', () => {
  it('is a line of counts over all reports, after what failed', () => {
    expect(linesOf({ 'all.json': whole, 'roles.json': { ...nothing, numPassedTests: 4 } }, '1')).toEqual([
      'failed: shared/b.test.ts: b keeps the image',
      '7 passed, 1 failed, 3 skipped',
    ]);
  });

  it('counts what could not begin as failed, whether it was not read or not prepared, and says which', () => {
    expect(linesOf({ 'all.json': whole, 'real-0.json': unread, 'real-1.json': unprepared }, '1')).toEqual([
      'failed: shared/b.test.ts: b keeps the image',
      "failed: test/flows/c.test.ts: could not begin: Cannot find module './gone.ts'",
      'failed: test/flows/d.test.ts: could not begin',
      '3 passed, 3 failed, 5 skipped',
    ]);
  });

  it('counts a run that died without a report, or failed beside its tests', () => {
    expect(linesOf({ 'roles.json': { ...nothing, numPassedTests: 4 } }, '137')).toEqual([
      'failed: a run ended with exit code 137, and no report says why: its words are above',
      '4 passed, 1 failed, 0 skipped',
    ]);
  });

  it('names what passed only when it was run again', () => {
    expect(
      linesOf({ 'all.json': { ...nothing, numPassedTests: 2, ranAgain: [join(root, 'shared/a.test.ts')] } }),
    ).toEqual(['failed once: shared/a.test.ts', '2 passed, 0 failed, 0 skipped']);
  });

  it('is that line alone where nothing failed', () => {
    expect(linesOf({ 'all.json': { ...nothing, numPassedTests: 2 } })).toEqual(['2 passed, 0 failed, 0 skipped']);
  });
});
