// Golden images that are updated automatically, under faults: the offered version is always complete, and finally the newest.
import { describe, expect, it } from 'vitest';
import { cronScenarios, runCalmCron, runCron } from '#test/faults/golden-cron.ts';
import { stormSeeds } from '#test/support/random.ts';

const seeds = stormSeeds(2);

describe.each(cronScenarios)('$name', (scenario) => {
  it('always offers a complete version, and finally the newest', async () => {
    expect((await runCalmCron(scenario, 1)).violations).toEqual([]);
    for (const seed of seeds) {
      const { violations } = await runCron(scenario, seed);
      expect({ seed, violations }).toEqual({ seed, violations: [] });
    }
  });
});
