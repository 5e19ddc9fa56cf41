// What CI makes of files that fail: run again as a whole, from a clean start, and counted once.
import { spawnSync } from 'node:child_process';
import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { expect, it } from 'vitest';
import { type Report, countsOf, failuresOf } from '#test/counts/counts.ts';
import { temporaryDirectory } from '#test/support/directory.ts';

const program = resolve('test/twice/main.ts');
const dir = temporaryDirectory();
const config = `export default { test: { include: ['*.test.mjs'], globals: true, pool: 'forks' } }`;
const good = `it('is good', () => {})`;
/** As flows are: what the first test makes is what the second needs, and is made once for each process. Fails until the file has been run \`tries\` times. */
const flowOf = (tries: number) => `
  import { appendFileSync, readFileSync } from 'node:fs';
  const made = new Set();
  appendFileSync('tries', 'x');
  it('makes', () => {
    if (made.has('one')) throw new Error('already exists');
    made.add('one');
    if (readFileSync('tries').length < ${tries}) throw new Error('too late');
  });
  it('goes on', () => expect(made.has('one')).toBe(true));
  it.skip('is left out', () => {});
`;
const orphan = `it('leaves something behind', async () => {
  setTimeout(() => { throw new Error('nobody waits for me'); }, 1);
  await new Promise((resolve) => setTimeout(resolve, 300));
})`;

const run = async (name: string, files: Readonly<Record<string, string>>) => {
  const cwd = join(dir, name);
  await mkdir(cwd);
  for (const [file, text] of Object.entries({ 'vitest.config.mjs': config, ...files }))
    await writeFile(join(cwd, file), text);
  const { VITEST: _, VITEST_POOL_ID: _pool, VITEST_WORKER_ID: _worker, ...env } = process.env;
  const { status, stdout } = spawnSync(process.execPath, [program, '--report', 'report'], {
    cwd,
    env,
    encoding: 'utf8',
  });
  const report = JSON.parse(await readFile(join(cwd, 'report'), 'utf8')) as Report;
  const { passed, failed, skipped } = countsOf([report]);
  const again = /failed once, and run again: (.*)/.exec(stdout)?.[1];
  return { status, again, counts: [passed, failed, skipped], named: failuresOf([report], cwd) };
};

interface Outcome {
  readonly status: number;
  readonly again: string | undefined;
  readonly counts: readonly number[];
  readonly named: readonly string[];
}

it.each<[what: string, files: Record<string, string>, outcome: Outcome]>([
  ['all is well', { 'good.test.mjs': good }, { status: 0, again: undefined, counts: [1, 0, 0], named: [] }],
  [
    'one failed once',
    { 'flow.test.mjs': flowOf(2), 'good.test.mjs': good },
    { status: 0, again: 'flow.test.mjs', counts: [3, 0, 1], named: [] },
  ],
  [
    'one failed twice',
    { 'flow.test.mjs': flowOf(3), 'good.test.mjs': good },
    { status: 1, again: 'flow.test.mjs', counts: [2, 1, 1], named: ['flow.test.mjs: makes'] },
  ],
  [
    'a file cannot be read',
    { 'broken.test.mjs': 'it(', 'good.test.mjs': good },
    { status: 1, again: 'broken.test.mjs', counts: [1, 1, 0], named: ['broken.test.mjs: could not begin'] },
  ],
  [
    'something is thrown that no test throws',
    { 'orphan.test.mjs': orphan },
    { status: 1, again: 'orphan.test.mjs', counts: [1, 0, 0], named: [] },
  ],
])('%s', async (what, files, outcome) => {
  expect(await run(what.replaceAll(' ', '-'), files)).toEqual(outcome);
});
