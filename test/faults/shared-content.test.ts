import { describe, expect, it } from 'vitest';
import { sharedContent } from '#test/faults/scenarios.ts';
import { runSharedContent } from '#test/faults/shared-content.ts';

const seeds = Number(process.env['FAULT_SEEDS'] ?? 4);

describe.each(sharedContent)('$name', (scenario) => {
  it('fetches once, and fills all of them', async () => {
    for (let seed = 1; seed <= seeds; seed += 1)
      expect({ seed, violations: await runSharedContent(scenario, seed) }).toEqual({ seed, violations: [] });
  });
});
