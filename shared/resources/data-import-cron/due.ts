// Whether a cron's source is to be asked now, what is asked, and when it is asked next. Pure.
import { isDeepStrictEqual } from 'node:util';
import type { DataImportCron, PollStatus } from '#shared/api/cdi/data-import-cron.ts';
import { cdiAnnotations } from '#shared/api/cdi/names.ts';
import { dueTime, nextPollAfter } from '#shared/golden/schedule.ts';
import type { Validators, Observation } from '#shared/golden/poll/observation.ts';
import type { ObserveRequest } from '#shared/golden/poll/observe.ts';
import { type Schedule, parseSchedule } from '#shared/golden/schedule.ts';
import { type CronSource, hostOf, readCronSource, sourceName } from '#shared/golden/source.ts';

const scheduleOf = ({ spec }: DataImportCron): Schedule | undefined => {
  if (spec.schedule === '') return undefined;
  const parsed = parseSchedule(spec.schedule);
  return 'value' in parsed ? parsed.value : undefined;
};

const sourceOf = ({ spec }: DataImportCron): CronSource | undefined => {
  const read = readCronSource(spec);
  return 'value' in read ? read.value : undefined;
};

const timeOf = (text: string | undefined): number | undefined => {
  const time = Date.parse(text ?? '');
  return Number.isNaN(time) ? undefined : time;
};

const hasDigest = ({ metadata }: DataImportCron): boolean =>
  (metadata.annotations?.[cdiAnnotations.desiredDigest] ?? '') !== '';

/** What a poll left to know the next answer by. */
const sightOf = ({ sourceDigest, etag, lastModified }: Validators = {}): Validators => ({
  sourceDigest,
  etag,
  lastModified,
});

/** Without a digest to compare with, nothing can be the same. */
const knownOf = (cron: DataImportCron): Validators => {
  if (!hasDigest(cron)) return {};
  return sightOf(cron.status?.lastPoll);
};

/** What to ask, if that is to be now. `now` is ms since the epoch. */
export const duePoll = (cron: DataImportCron, now: number): ObserveRequest | undefined => {
  const { annotations = {}, deletionTimestamp, namespace = '' } = cron.metadata;
  if (cron.spec.schedule === '' || deletionTimestamp !== undefined) return undefined;
  const next = timeOf(annotations[cdiAnnotations.nextCronTime]);
  // Not reading schedules of crons that are not due keeps a tick over many of them cheap.
  if (next !== undefined && next > now && hasDigest(cron)) return undefined;
  const [schedule, source] = [scheduleOf(cron), sourceOf(cron)];
  if (schedule === undefined || source === undefined) return undefined;
  const last = timeOf(annotations[cdiAnnotations.lastCronTime]);
  const due = dueTime(schedule, sourceName(source), { last, next });
  return due === undefined || due > now ? undefined : { source, namespace, known: knownOf(cron) };
};

/** Before this time, `duePoll` finds nothing to ask for a cron that stays as it is. In ms since the epoch. */
export const nextPollOf = (cron: DataImportCron): number => {
  const { annotations = {}, deletionTimestamp } = cron.metadata;
  const [schedule, source] = [scheduleOf(cron), sourceOf(cron)];
  if (schedule === undefined || source === undefined || deletionTimestamp !== undefined) return Infinity;
  const last = timeOf(annotations[cdiAnnotations.lastCronTime]);
  const next = timeOf(annotations[cdiAnnotations.nextCronTime]);
  return dueTime(schedule, sourceName(source), { last, next }) ?? Infinity;
};

/**
 * Whose turn it is when crons of a host go one after the other: the lowest first. In ms since the epoch: when the source answered last. After every second
 * refusal when it was asked last, so that one that asks for more than the host ever gives does not keep the others from their turn.
 */
export const turnOf = ({ status }: DataImportCron): number => {
  const { failures = 0, answered, time } = status?.lastPoll ?? {};
  return timeOf(failures > 0 && failures % 2 === 0 ? time : answered) ?? 0;
};

export const awaitedBy = (cron: DataImportCron): string | undefined => {
  const source = cron.status?.waiting === undefined ? undefined : sourceOf(cron);
  return source && hostOf(source);
};

/** Crons with the same key get the same answer: what is asked, and with whose access. */
export const pollKey = ({ source, namespace }: ObserveRequest): string => {
  const isShared = source.type !== 'pvc' && source.secretName === undefined && source.caName === undefined;
  return JSON.stringify([source, isShared ? '' : namespace]);
};

/** One question for two crons: where they do not know the same, nothing is taken as known, and the answer tells the digest to both. */
export const joinRequests = (one: ObserveRequest, other: ObserveRequest): ObserveRequest =>
  isDeepStrictEqual(one.known, other.known) ? one : { ...one, known: {} };

/** An observation for which the source was asked. */
export type Answered = Exclude<Observation, { readonly is: 'waiting' }>;
export type Waiting = Extract<Observation, { readonly is: 'waiting' }>;

/** How long to wait after consecutive polls that failed, also past the schedule's next time. */
export const backoffMs = (failures: number): number => Math.min(60, 2 ** Math.min(failures - 1, 10)) * 60_000;

/** When to ask again, in ms since the epoch; `undefined`: never. */
const nextTime = (cron: DataImportCron, observation: Answered, failures: number, now: number): number | undefined => {
  const [schedule, source] = [scheduleOf(cron), sourceOf(cron)];
  if (schedule === undefined || source === undefined) return undefined;
  if (observation.is !== 'failed') return nextPollAfter(schedule, sourceName(source), now);
  return now + Math.max((observation.retryAfterSeconds ?? 0) * 1000, backoffMs(failures));
};

export interface Recorded {
  /** Annotations of the cron. */
  readonly annotations: Readonly<Record<string, string>>;
  readonly lastPoll: PollStatus;
}

const secondIso = (time: number): string => new Date(Math.ceil(time / 1000) * 1000).toISOString().replace('.000Z', 'Z');

/** What the next poll needs to know of this one. */
const memoryAfter = (cron: DataImportCron, observation: Observation): Validators & Pick<PollStatus, 'tag'> =>
  observation.is === 'found'
    ? { tag: observation.tag, ...observation.memory }
    : { tag: cron.status?.lastPoll?.tag, ...knownOf(cron) };

/** The digest that a cron did not know yet. */
const newDigest = ({ metadata }: DataImportCron, observation: Observation): string | undefined =>
  observation.is === 'found' && observation.digest !== metadata.annotations?.[cdiAnnotations.desiredDigest]
    ? observation.digest
    : undefined;

/** What an answer makes of a cron. */
export const recordOf = (cron: DataImportCron, observation: Answered, now: number): Recorded => {
  const isFailure = observation.is === 'failed';
  const { failures: before = 0, answered } = cron.status?.lastPoll ?? {};
  const failures = isFailure ? before + 1 : 0;
  const next = nextTime(cron, observation, failures, now);
  const digest = newDigest(cron, observation);
  const time = secondIso(now);
  return {
    annotations: {
      [cdiAnnotations.lastCronTime]: time,
      ...(next === undefined ? {} : { [cdiAnnotations.nextCronTime]: secondIso(next) }),
      ...(digest === undefined ? {} : { [cdiAnnotations.desiredDigest]: digest }),
    },
    lastPoll: {
      time,
      outcome: isFailure ? 'Failed' : digest === undefined ? 'Same' : 'Changed',
      message: observation.message,
      ...(isFailure ? { reason: observation.reason } : {}),
      failures,
      answered: isFailure ? answered : time,
      ...memoryAfter(cron, observation),
    },
  };
};

/** Whether a poll was written down once this one had asked: which of the two is newer, nobody knows. Or it is this one, heard of again. */
export const isOvertaken = ({ metadata }: DataImportCron, askedAt: number): boolean =>
  (timeOf(metadata.annotations?.[cdiAnnotations.lastCronTime]) ?? 0) >= askedAt;

/** Whether it saw something else than the poll that was written down. */
export const isContradicted = ({ status }: DataImportCron, observation: Observation): boolean =>
  observation.is === 'found' && !isDeepStrictEqual(sightOf(observation.memory), sightOf(status?.lastPoll));

/** Milliseconds after which an answer is too old to put off a poll that is due: somebody may have asked for one since. */
const freshMs = 120_000;

/** Whether an answer is heard of so late that a newer one is to be had at once. A source that failed is left alone for as long as ever. */
export const isStale = ({ is }: Answered, askedAt: number, now: number): boolean =>
  is !== 'failed' && now - askedAt > freshMs;

export const dueAgain = (recorded: Recorded, now: number): Recorded =>
  recorded.annotations[cdiAnnotations.nextCronTime] === undefined
    ? recorded
    : { ...recorded, annotations: { ...recorded.annotations, ...askAgain(now).annotations } };

/** Metadata of a cron that is due now. */
export const askAgain = (now: number) => ({
  annotations: { [cdiAnnotations.nextCronTime]: secondIso(now) },
});
