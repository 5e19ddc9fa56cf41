// What a cron says of itself: the original's conditions with its reasons and texts, and ours beside them. Pure.
import type { WantedCondition } from '#shared/api/conditions.ts';
import type { CronState, CronResource } from '#shared/resources/data-import-cron/cron.ts';
import { type VersionEventType, buildVersionEvent } from '#events/build.ts';
import { eventTypes } from '#events/catalogue.ts';
import type { CloudEvent } from '#events/event.ts';
import type { CronCounts, PollStatus } from '#shared/api/cdi/data-import-cron.ts';
import type { Note } from '#shared/resources/transitions.ts';

type Said = Omit<WantedCondition, 'type'>;

const condition = (status: Said['status'], reason: string, message: string): Said => ({ status, reason, message });

export const progressing = {
  none: condition('False', 'NoImport', 'No current import'),
  notAuthorized: condition('False', 'NotAuthorized', 'Not authorized to create DataVolume'),
  /** By the phase of the data volume. */
  of: (phase: string): Said => {
    if (phase === 'ImportScheduled') return condition('False', 'ImportScheduled', 'Import is scheduled');
    if (phase === 'ImportInProgress') return condition('True', 'ImportProgressing', 'Import is progressing');
    return condition('False', phase, `Import DataVolume phase ${phase}`);
  },
  snapshot: condition('True', 'ImportProgressing', 'Snapshot of imported data is progressing'),
} as const;

export const upToDate = {
  yes: condition('True', 'UpToDate', 'Latest import is up to date'),
  outdated: condition('False', 'Outdated', 'Source digest updated since last import'),
  importing: condition('False', 'ImportProgressing', 'Import is progressing'),
  snapshot: condition('False', 'ImportProgressing', 'Snapshot of imported data is progressing'),
  noDigest: condition('False', 'NoDigest', 'No source digest'),
} as const;

export interface CronVerdict {
  readonly phase: CronState['phase'];
  readonly progressing: Said;
  readonly upToDate: Said;
  /** What is wrong and what to do; left out: nothing. */
  readonly trouble?: { readonly reason: string; readonly message: string } | undefined;
}

const rateLimited = 'RateLimited';

const pollTrouble = ({ lastPoll, waiting, nextPoll }: CronState): CronVerdict['trouble'] => {
  if (waiting !== undefined)
    return { reason: rateLimited, message: `${waiting.message}; the next attempt is at ${waiting.until}` };
  if (lastPoll?.outcome !== 'Failed') return undefined;
  const next = nextPoll === undefined ? '' : `; the next attempt is at ${nextPoll}`;
  return {
    reason: lastPoll.reason === rateLimited ? rateLimited : 'PollFailed',
    message: `the source cannot be polled (attempt ${lastPoll.failures}): ${lastPoll.message}${next}`,
  };
};

const degradedOf = (trouble: CronVerdict['trouble']): Said =>
  trouble === undefined
    ? condition('False', 'AsExpected', 'nothing is wrong')
    : condition('True', trouble.reason, trouble.message);

/** Whether disks can be made, from whichever version. */
const readyOf = (offered: string | undefined, { trouble, upToDate: fresh, progressing: doing }: CronVerdict): Said => {
  if (offered !== undefined) return condition('True', 'Ready', `${offered} is in use`);
  if (trouble !== undefined) return condition('False', trouble.reason, trouble.message);
  const why = doing.status === 'True' || fresh.reason !== 'ImportProgressing' ? fresh : doing;
  return condition('False', why.reason ?? 'Pending', why.message ?? '');
};

/** The state that reports a verdict. `next` is the state so far. */
export const conclude = (cron: CronResource, next: CronState, verdict: CronVerdict): CronState => {
  const trouble = verdict.trouble ?? pollTrouble({ ...cron.state, nextPoll: next.nextPoll });
  const ready = readyOf(next.offered, { ...verdict, trouble });
  return {
    ...next,
    phase: verdict.phase,
    reason: ready.reason ?? 'Pending',
    message: ready.message ?? '',
    conditions: [
      { type: 'Progressing', ...verdict.progressing },
      { type: 'UpToDate', ...verdict.upToDate },
      { type: 'Ready', ...ready },
      { type: 'Degraded', ...degradedOf(trouble) },
    ],
  };
};

// The event for machines when a version came into use or cannot be had: at least once, by the mark that stays in status. Pure.

/** Names the end a version has come to; `undefined` while it is on its way. */
export const endNameOf = ({ phase, current, importedAt, handledRetryToken }: CronState): string | undefined => {
  if (current === undefined) return undefined;
  if (phase === 'Ready') return `imported/${current.name}/${importedAt ?? ''}`;
  return phase === 'Failed' ? `failed/${current.name}/${handledRetryToken ?? ''}` : undefined;
};

export const buildEnding = (cron: CronResource, state: CronState): CloudEvent | undefined => {
  const name = endNameOf(state);
  if (name === undefined || state.current === undefined) return undefined;
  const type: VersionEventType = state.phase === 'Ready' ? eventTypes.versionImported : eventTypes.versionFailed;
  const { reason = state.reason, message = state.message } =
    state.conditions.find((condition) => condition.type === (state.phase === 'Ready' ? 'Ready' : 'Degraded')) ?? {};
  const data = { cron: cron.ref, version: state.current.name, digest: state.current.digest, reason, message };
  return buildVersionEvent(type, data, name, { source: 'bullion.dev/golden' });
};

// What happened over the life of a cron, in numbers, for monitoring. Counted with the step that says it, so that a step which is taken again counts
// once. Pure.

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
