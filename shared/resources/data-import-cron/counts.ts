// What happened over the life of a cron, in numbers, for monitoring. Counted with the step that says it, so that a step which is taken again counts
// once. Pure.
import type { CronCounts, PollStatus } from '#shared/api/cdi/data-import-cron.ts';
import type { Note } from '#shared/resources/transitions.ts';

/** By the reason of the note that tells people. */
const fields: Readonly<Record<string, keyof CronCounts>> = {
  VersionImported: 'imported',
  ImportSuperseded: 'superseded',
  ImportFailed: 'failed',
  VersionCollected: 'collected',
};

const add = (counts: CronCounts, field: keyof CronCounts): CronCounts => ({
  ...counts,
  [field]: (counts[field] ?? 0) + 1,
});

export const countNotes = (counts: CronCounts, notes: readonly Note[]): CronCounts =>
  notes
    .map(({ reason }) => fields[reason])
    .filter((field) => field !== undefined)
    .reduce(add, counts);

export const countPoll = (counts: CronCounts, { outcome }: PollStatus): CronCounts => {
  const polled = add(counts, 'polled');
  return outcome === 'Failed' ? add(polled, 'pollsFailed') : polled;
};
