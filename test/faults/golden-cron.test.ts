// Golden images that keep themselves fresh, under storms: what is offered is always full, and in the end it is the newest.
import { describe, expect, it } from 'vitest';
import { cronScenarios, runCalmCron, runCron } from '#test/faults/golden-cron.ts';

const seeds = Number(process.env['FAULT_SEEDS'] ?? 2);

describe.each(cronScenarios)('$name', (scenario) => {
  it('always offers a full version, and the newest in the end', async () => {
    expect((await runCalmCron(scenario, 1)).violations).toEqual([]);
    for (let seed = 1; seed <= seeds; seed += 1) {
      const { violations } = await runCron(scenario, seed);
      expect({ seed, violations }).toEqual({ seed, violations: [] });
    }
  });
});
