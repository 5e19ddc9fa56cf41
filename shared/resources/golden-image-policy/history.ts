// Events of a policy for people and machines: for each entry of its history, once that is written, and for what needs somebody. Pure.
import type { PolicyVersionEventType } from '#events/build.ts';
import { eventTypes } from '#events/catalogue.ts';
import type { CloudEvent } from '#events/event.ts';
import type { GoldenImagePolicy, HistoryEntry } from '#shared/api/bullion/golden-image-policy.ts';
import { refOf } from '#shared/api/object.ts';
import type { PolicyResource, PolicyState } from '#shared/resources/golden-image-policy/policy.ts';
import { isTrouble } from '#shared/resources/golden-image-policy/verdict.ts';
import type { Note } from '#shared/resources/transitions.ts';
import { toVersionEvent } from '#shared/resources/write.ts';

const entryNotes: Readonly<
  Record<
    Exclude<HistoryEntry['reason'], 'Adopted'>,
    { readonly reason: string; readonly event?: PolicyVersionEventType }
  >
> = {
  Promoted: { reason: 'VersionPromoted', event: eventTypes.versionPromoted },
  Pinned: { reason: 'VersionPinned', event: eventTypes.versionPinned },
  RolledBack: { reason: 'VersionRolledBack', event: eventTypes.versionRolledBack },
  MarkedBad: { reason: 'VersionMarkedBad', event: eventTypes.versionMarkedBad },
  Deprecated: { reason: 'VersionDeprecated', event: eventTypes.versionDeprecated },
  Obsolete: { reason: 'VersionObsolete', event: eventTypes.versionDeprecated },
  Restored: { reason: 'VersionRestored' },
};

const ends: ReadonlySet<HistoryEntry['reason']> = new Set(['Deprecated', 'Obsolete', 'Restored']);
const warnings: ReadonlySet<HistoryEntry['reason']> = new Set(['MarkedBad', 'Obsolete']);

const sentenceOf = ({ channel, from, to, by, message, reason }: HistoryEntry): string => {
  const who = by === undefined ? '' : `, by ${by}`;
  if (ends.has(reason)) return `${channel === undefined ? to : `channel ${channel}`}${who}: ${message}`;
  const what = channel === undefined ? `${to} is bad` : `channel ${channel} has ${to}`;
  const before = from === undefined ? '' : ` in place of ${from}`;
  return `${what}${before}${who}: ${message}`;
};

const noteOf = (entry: HistoryEntry): readonly Note[] => {
  const { reason: what, channel, to, time } = entry;
  if (what === 'Adopted') return [];
  const { reason, event } = entryNotes[what];
  return [
    {
      type: warnings.has(what) ? 'Warning' : 'Normal',
      reason,
      message: sentenceOf(entry),
      occurrence: `${what.toLowerCase()}/${channel ?? ''}/${to}/${time}`,
      ...(event === undefined ? {} : { version: { of: 'policy', type: event, name: to, channel } }),
    },
  ];
};

/** What was sent of the history that is kept, with the same ids, oldest first. */
export const eventsOf = (policy: GoldenImagePolicy): readonly CloudEvent[] =>
  (policy.status?.history ?? []).flatMap((entry) =>
    noteOf(entry).flatMap((note) =>
      note.version === undefined ? [] : [toVersionEvent(refOf(policy), note, note.version, new Date(entry.time))],
    ),
  );

/** Each time a channel comes to need somebody. */
const troubleNotes = ({ state }: PolicyResource, next: PolicyState): readonly Note[] =>
  next.channels
    .filter(({ name, reason, message }) => {
      const before = state.channels.find((one) => one.name === name);
      return isTrouble(reason) && (before?.reason !== reason || before.message !== message);
    })
    .map(({ name, reason, message, version = '' }) => ({
      type: 'Warning',
      reason,
      message: `channel ${name}: ${message}`,
      occurrence: `${reason}/${name}/${version}/${next.observedGeneration ?? 0}`,
    }));

/** Of what the status has had since before this pass: a decision that was overtaken is never reported. */
export const notesOf = (policy: PolicyResource, next: PolicyState): readonly Note[] => {
  const { history, pendingEvents } = policy.state;
  const pending = pendingEvents === 0 ? [] : history.slice(-pendingEvents);
  return [...pending.flatMap(noteOf), ...troubleNotes(policy, next)];
};
