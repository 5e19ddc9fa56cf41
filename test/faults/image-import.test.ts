// A few seeds of the fault simulation, in every test run; `npm run test:faults` runs as many as requested.
import { describe, expect, it } from 'vitest';
import { runCalm, runScenario } from '#test/faults/image-import.ts';
import { scenarios } from '#test/faults/scenarios.ts';
import { stormSeeds } from '#test/support/random.ts';

/** The last one: neither events nor ticks got through until the wait of an image for its DataVolume was over, which had what it waited for. */
const seeds = [...stormSeeds(2), 777_123];

describe.each(scenarios)('$name', (scenario) => {
  it('reaches the same state as a run without faults, whatever happens in between', async () => {
    const expected = await runCalm(scenario, 1);
    expect(expected.violations).toEqual([]);
    for (const seed of seeds) {
      const { violations, summary } = await runScenario(scenario, seed);
      expect({ seed, violations, summary }).toEqual({ seed, violations: [], summary: expected.summary });
    }
  });
});
