// A few seeds of the faults over backups, in every test run; `npm run test:faults -- --backups N` runs N seeds.
import { describe, expect, it } from 'vitest';
import { expectedSummary, runBackupStorm } from '#test/faults/backup.ts';
import { expectedOfShared, runSharedStorm } from '#test/faults/backup-shared.ts';
import { stormSeeds } from '#test/support/random.ts';

const seeds = stormSeeds(12);

describe('backups under faults', () => {
  it('lose nothing, refer to nothing that is missing, block nothing, and reach their final state', async () => {
    const deletions = new Set<boolean>();
    for (const seed of seeds) {
      const { violations, summary } = await runBackupStorm(seed);
      const { isDeleted } = summary as { readonly isDeleted: boolean };
      deletions.add(isDeleted);
      expect({ seed, violations, summary }).toEqual({ seed, violations: [], summary: expectedSummary(isDeleted) });
    }
    // Both kinds of runs occurred.
    expect(deletions.size).toBe(seeds.length >= 12 ? 2 : deletions.size);
  });

  it('of two clusters do not affect each other', async () => {
    for (const seed of seeds.slice(0, Math.ceil(seeds.length / 4)))
      expect({ seed, ...(await runSharedStorm(seed)) }).toEqual({ seed, violations: [], summary: expectedOfShared });
  });
});
