// `npm run test:times [-- <what vitest run takes> …]`: tests as `npm test` runs them, then where the time went: seconds on the clock and of processors by file,
// the costliest first, in the worker and in the processes that it started. Numbers of one machine at one time: printed, never asserted.
import { spawnSync } from 'node:child_process';
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

interface Times {
  readonly file: string;
  readonly wall: number;
  readonly own: number;
  readonly children: number;
}

const folder = mkdtempSync(join(tmpdir(), 'bullion-times-'));
const lines = join(folder, 'times');
const begun = performance.now();
const { status } = spawnSync(process.execPath, ['node_modules/vitest/vitest.mjs', 'run', ...process.argv.slice(2)], {
  stdio: 'inherit',
  env: { ...process.env, BULLION_TIMES: lines },
});
const wall = (performance.now() - begun) / 1000;
const text = existsSync(lines) ? readFileSync(lines, 'utf8') : '';
rmSync(folder, { recursive: true });

const files = text
  .split('\n')
  .filter((line) => line !== '')
  .map((line) => JSON.parse(line) as Times)
  .toSorted((one, other) => other.own + other.children - one.own - one.children);
const total = (of: (times: Times) => number): number => files.reduce((all, times) => all + of(times), 0);
const row = (file: string, ...seconds: number[]): string =>
  [...seconds.map((value) => value.toFixed(1).padStart(9)), file].join(' ');

console.log(['clock', 'processor', 'worker', 'children'].map((word) => word.padStart(9)).join(' '));
for (const { file, wall: clock, own, children } of files) console.log(row(file, clock, own + children, own, children));
const own = total((times) => times.own);
const children = total((times) => times.children);
console.log(
  row(
    `${files.length} files in ${wall.toFixed(0)} s`,
    total((times) => times.wall),
    own + children,
    own,
    children,
  ),
);
process.exit(status ?? 1);
