import { describe, expect, it } from 'vitest';
import { runMachine } from '#test/faults/machine-disks.ts';

describe('a machine whose events nobody hears', { timeout: 120_000 }, () => {
  it.each(Array.from({ length: 12 }, (_, index) => index + 1))(
    'takes along what goes with it (seed %i)',
    async (seed) => {
      expect(await runMachine(seed)).toEqual([]);
    },
  );
});
