import { describe, expect, it } from 'vitest';
import { runMachine } from '#test/faults/machine-disks.ts';
import { stormSeeds } from '#test/support/random.ts';

describe('a machine whose events are all lost', { timeout: 120_000 }, () => {
  it.each(stormSeeds(12))('deletes what is to be deleted with it (seed %i)', async (seed) => {
    expect(await runMachine(seed)).toEqual([]);
  });
});
