// Channels of golden images under faults: never without a version, never back automatically, never to a bad version; and finally the newest good version.
import { describe, expect, it } from 'vitest';
import { policyScenarios, runCalmPolicy, runPolicy } from '#test/faults/golden-policy.ts';
import { runCalmUndelete, runUndelete } from '#test/faults/golden-undelete.ts';
import { stormSeeds } from '#test/support/random.ts';

const seeds = stormSeeds(2);

describe.each(policyScenarios)('$name', (scenario) => {
  it('always resolves to a complete version, and finally to the newest good one', async () => {
    expect(await runCalmPolicy(scenario, 1)).toEqual([]);
    for (const seed of seeds) {
      const { violations } = await runPolicy(scenario, seed);
      expect({ seed, violations }).toEqual({ seed, violations: [] });
    }
  });
});

describe('versions that are deleted by hand', () => {
  it('are kept for their grace, brought back with their bytes, and gone after it', async () => {
    const calm = await runCalmUndelete(1);
    expect(calm.violations).toEqual([]);
    expect(calm.deleted.length).toBe(2);
    for (const seed of seeds) {
      const { violations } = await runUndelete(seed);
      expect({ seed, violations }).toEqual({ seed, violations: [] });
    }
  });
});
