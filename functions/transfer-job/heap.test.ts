import { execFileSync } from 'node:child_process';
import { join } from 'node:path';
import { expect, it } from 'vitest';

/** Allocates what a scavenger would like a large young generation for; prints its MiB. */
const allocate = `
let kept = [];
for (let i = 0; i < 1e6; i += 1) {
  kept.push({ i, text: 'x' + i });
  if (kept.length > 20_000) kept = kept.slice(15_000);
}
const spaces = require('node:v8').getHeapSpaceStatistics();
console.log(spaces.find(({ space_name }) => space_name === 'new_space').space_size / 2 ** 20);`;

const youngMib = (...before: readonly string[]): number =>
  Number(execFileSync(process.execPath, [...before, '--eval', allocate], { encoding: 'utf8' }));

it('the young generation stays small, whatever is allocated', () => {
  // 4 MiB, and up to 4.25 when the machine is busy.
  expect(youngMib('--import', join(import.meta.dirname, 'heap.ts'))).toBeLessThan(6);
  // Otherwise nothing is shown by this.
  expect(youngMib()).toBeGreaterThan(8);
});
