// A few seeds of the storm over backups, in every test run; `npm run test:faults -- --backups N` runs as many as asked for.
import { describe, expect, it } from 'vitest';
import { expectedSummary, runBackupStorm } from '#test/faults/backup.ts';
import { expectedOfShared, runSharedStorm } from '#test/faults/backup-shared.ts';
import { stormSeeds } from '#test/support/random.ts';

const seeds = stormSeeds(12);

describe('backups under a storm', () => {
  it('lose nothing, name nothing that is missing, hold nobody, and arrive where they must', async () => {
    const deletions = new Set<boolean>();
    for (const seed of seeds) {
      const { violations, summary } = await runBackupStorm(seed);
      const { isDeleted } = summary as { readonly isDeleted: boolean };
      deletions.add(isDeleted);
      expect({ seed, violations, summary }).toEqual({ seed, violations: [], summary: expectedSummary(isDeleted) });
    }
    // Both kinds of runs were observed.
    expect(deletions.size).toBe(seeds.length >= 12 ? 2 : deletions.size);
  });

  it('leave to each of two clusters what is its own', async () => {
    for (const seed of seeds.slice(0, Math.ceil(seeds.length / 4)))
      expect({ seed, ...(await runSharedStorm(seed)) }).toEqual({ seed, violations: [], summary: expectedOfShared });
  });
});
