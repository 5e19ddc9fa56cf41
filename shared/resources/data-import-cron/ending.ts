// What machines are told when a version came into use or cannot be had: at least once, by the mark that stays in status. Pure.
import { type VersionEventType, buildVersionEvent } from '#events/build.ts';
import { eventTypes } from '#events/catalogue.ts';
import type { CloudEvent } from '#events/event.ts';
import type { CronState, CronSubject } from '#shared/resources/data-import-cron/subject.ts';

/** Names the end a version has come to; `undefined` while it is on its way. */
export const endNameOf = ({ phase, current, importedAt, handledRetryToken }: CronState): string | undefined => {
  if (current === undefined) return undefined;
  if (phase === 'Ready') return `imported/${current.name}/${importedAt ?? ''}`;
  return phase === 'Failed' ? `failed/${current.name}/${handledRetryToken ?? ''}` : undefined;
};

export const buildEnding = (cron: CronSubject, state: CronState): CloudEvent | undefined => {
  const name = endNameOf(state);
  if (name === undefined || state.current === undefined) return undefined;
  const type: VersionEventType = state.phase === 'Ready' ? eventTypes.versionImported : eventTypes.versionFailed;
  const { reason = state.reason, message = state.message } =
    state.conditions.find((condition) => condition.type === (state.phase === 'Ready' ? 'Ready' : 'Degraded')) ?? {};
  const data = { cron: cron.ref, version: state.current.name, digest: state.current.digest, reason, message };
  return buildVersionEvent(type, data, name, { source: 'bullion.dev/golden' });
};
