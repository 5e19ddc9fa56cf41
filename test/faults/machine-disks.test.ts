import { describe, expect, it } from 'vitest';
import { runMachine } from '#test/faults/machine-disks.ts';
import { stormSeeds } from '#test/support/random.ts';

describe('a machine whose events nobody hears', { timeout: 120_000 }, () => {
  it.each(stormSeeds(12))('takes along what goes with it (seed %i)', async (seed) => {
    expect(await runMachine(seed)).toEqual([]);
  });
});
