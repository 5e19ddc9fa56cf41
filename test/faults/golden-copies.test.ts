// Golden copies in another storage class, under faults and with a death at every call: disks hold what their version holds, and are cloned by the storage.
import { describe, expect, it } from 'vitest';
import { copyScenarios, runCalmCopies, runCopies } from '#test/faults/golden-copies.ts';
import { effort, seed as firstSeed, stormSeeds } from '#test/support/random.ts';
import { deathAfterEffect } from '#test/support/simulation/scheduler.ts';

const once = { copies: 1, strategies: ['snapshot', 'snapshot', 'snapshot'] };

describe.each(copyScenarios)('$name', { timeout: 120_000 }, (scenario) => {
  it('copies a version once, and clones every disk from the copy', async () => {
    const { violations, summary } = await runCalmCopies(scenario);
    expect({ violations, summary }).toEqual({ violations: [], summary: once });
  });

  it('ends well whatever is lost meanwhile', async () => {
    for (const seed of stormSeeds(2)) {
      const { violations } = await runCopies(scenario, seed);
      expect({ seed, violations }).toEqual({ seed, violations: [] });
    }
  });
});

/** Every fortieth call, starting at a different one in each run; all with `BULLION_FUZZ=40`. */
const stride = Math.max(1, Math.round(40 / effort));

describe.each(['first-use', 'prewarm', 'first-use-of-snapshots'])('%s', { timeout: 300_000 }, (name) => {
  it.each([
    ['before', { is: 'kill' }],
    ['after', deathAfterEffect],
  ] as const)('survives death %s any call', async (_when, verdict) => {
    const scenario = copyScenarios.find((one) => one.name === name)!;
    const { trace } = (await runCalmCopies(scenario)).world;
    const calls = trace.findLastIndex((call) => !/^cron-tick: (?:list|get)/.test(call));
    for (let at = firstSeed % stride; at < calls; at += stride) {
      const { violations, summary } = await runCalmCopies(scenario, (_call, index) =>
        index === at ? verdict : undefined,
      );
      expect({ at, violations, summary }).toEqual({ at, violations: [], summary: once });
    }
  });
});
