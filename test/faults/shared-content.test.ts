import { describe, expect, it } from 'vitest';
import { sharedContent } from '#test/faults/scenarios.ts';
import { runSharedContent } from '#test/faults/shared-content.ts';
import { stormSeeds } from '#test/support/random.ts';

const seeds = stormSeeds(4);

describe.each(sharedContent)('$name', (scenario) => {
  it('fetches once, and populates all of them', async () => {
    for (const seed of seeds)
      expect({ seed, violations: await runSharedContent(scenario, seed) }).toEqual({ seed, violations: [] });
  });
});
