// Channels of golden images under storms: never to nothing, never back by themselves, never to what is bad; and in the end the newest good version.
import { describe, expect, it } from 'vitest';
import { policyScenarios, runCalmPolicy, runPolicy } from '#test/faults/golden-policy.ts';
import { stormSeeds } from '#test/support/random.ts';

const seeds = stormSeeds(2);

describe.each(policyScenarios)('$name', (scenario) => {
  it('always leads to a full version, and to the newest good one in the end', async () => {
    expect(await runCalmPolicy(scenario, 1)).toEqual([]);
    for (const seed of seeds) {
      const { violations } = await runPolicy(scenario, seed);
      expect({ seed, violations }).toEqual({ seed, violations: [] });
    }
  });
});
