// A crash at every step: a function that is killed before or after any of its calls does not change the final state of an image. A failure names
// the call; `SEED` and `BULLION_FUZZ` reproduce it.
import { describe, expect, it } from 'vitest';
import { runCalm, runScenario } from '#test/faults/image-import.ts';
import { type Scenario, scenarios } from '#test/faults/scenarios.ts';
import { effort, seed } from '#test/support/random.ts';
import { calm } from '#test/support/simulation/chaos.ts';
import { type Verdict, deathAfterEffect } from '#test/support/simulation/scheduler.ts';

/** Of each scenario, spread evenly and different in each run; every call with `BULLION_FUZZ=20`. */
const kills = 16 * effort;

const named = (name: string): Scenario => {
  const found = scenarios.find((scenario) => scenario.name === name);
  if (found === undefined) throw new Error(`there is no scenario ${name}: name one of scenarios.ts`);
  return found;
};

const runKilled = (scenario: Scenario, at: number, verdict: Verdict) =>
  runScenario(scenario, 1, { chaos: calm, judge: (_call, index) => (index === at ? verdict : undefined) });

describe.each([
  'import',
  'flaky',
  'deleted',
  'retried',
  'restored',
  'copied',
  'data-volumes',
  'queued',
  'disks-of-pods',
])('%s', (name) => {
  it.each([
    ['before', { is: 'kill' }],
    ['after', deathAfterEffect],
  ] as const)('survives death %s any call', { timeout: 300_000 }, async (_when, verdict) => {
    const scenario = named(name);
    const expected = await runCalm(scenario, 1);
    const calls = expected.world.trace.length;
    // The last ticks only read a settled image.
    const last = expected.world.trace.findLastIndex((call) => !call.startsWith('cron-tick: list')) + 2;
    expect(last).toBeLessThanOrEqual(calls);
    const stride = Math.max(1, Math.ceil(last / kills));
    for (let at = seed % stride; at < last; at += stride) {
      const { violations, summary } = await runKilled(scenario, at, verdict);
      expect({ at, violations, summary }).toEqual({ at, violations: [], summary: expected.summary });
    }
  });
});
