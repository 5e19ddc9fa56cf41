// Kills the embedded API server a few times in every test run; `npm run test:faults -- --kills N` kills it N times.
import { expect, it } from 'vitest';
import { runKills } from '#test/faults/api-server-kill/run.ts';

it('keeps every acknowledged write, complete and in order, when the API server is killed at any moment', async () => {
  const report = await runKills(10, 1);
  expect(report.faults).toEqual([]);
  expect(report.kills).toBe(10);
  expect(report.acknowledged).toBeGreaterThan(0);
});
