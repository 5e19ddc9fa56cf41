// When a DataImportCron polls: cron expressions with descriptors and time zones, and what is due. Pure; called by admission and by the plan of crons.
import { type CronFields, type Zone, cronDescriptors, isDay, openZone, parseFields } from '#shared/runtime/cron.ts';
import { createHash } from 'node:crypto';
import { parseSpan } from '#shared/runtime/age.ts';

/** Times are milliseconds since the epoch. */
export interface Schedule {
  /**
   * The first time after `time`. A wall time that a clock change skips counts at the moment of the change, one that comes twice counts the
   * first time. `undefined` when there is none within eight years.
   */
  next(time: number): number | undefined;
}

export type ParsedSchedule = { readonly value: Schedule } | { readonly problem: string };

const minuteMs = 60_000;
const dayMs = 86_400_000;
/** 29 February may be eight years away, around a year such as 2100. */
const horizonDays = 8 * 366;

/** Five fields, a descriptor, or `@every 1h30m`; `TZ=Europe/Berlin` or `CRON_TZ=…` may stand before it, otherwise it is UTC. */
export const parseSchedule = (text: string): ParsedSchedule => {
  const match = /^(?:(?:CRON_)?TZ=(\S*)\s+)?(.*)$/s.exec(text.trim());
  const zone = openZone(match?.[1] ?? 'UTC');
  if (zone === undefined) return { problem: `has an unknown time zone ${match?.[1] ?? ''}` };
  return parseExpression(match?.[2]?.trim() ?? '', zone);
};

const parseExpression = (expression: string, zone: Zone): ParsedSchedule => {
  if (expression.startsWith('@every')) return parseEvery(expression);
  const text = cronDescriptors.get(expression) ?? expression;
  if (text.startsWith('@')) return { problem: `has an unknown descriptor ${text}` };
  const fields = parseFields(text);
  if ('problem' in fields) return fields;
  // Whether a day ever comes does not depend on today: the calendar repeats within the horizon.
  if (nextOf(fields, zone, 0) === undefined)
    return { problem: `never occurs: no year has a day that ${text} names; write one such as 0 0 28 2 *` };
  return { value: { next: (time) => nextOf(fields, zone, time) } };
};

const parseEvery = (expression: string): ParsedSchedule => {
  const text = expression.slice('@every'.length).trim();
  // Go's durations, which know no days.
  const ms = text.includes('d') ? undefined : parseSpan(text);
  if (ms === undefined || ms < 1000)
    return { problem: 'needs a duration of a second or more after @every, such as 1h30m' };
  const everyMs = Math.floor(ms / 1000) * 1000;
  return { value: { next: (time) => Math.floor(time / 1000) * 1000 + everyMs } };
};

/** Wall times come in order, and so do the moments they stand for, so the first that lies after `time` is the answer. */
const nextOf = (fields: CronFields, zone: Zone, time: number): number | undefined => {
  const begin = Math.floor(zone.wallOf(time) / minuteMs) * minuteMs;
  const today = Math.floor(begin / dayMs) * dayMs;
  for (let day = 0; day <= horizonDays; day += 1) {
    const date = new Date(today + day * dayMs);
    if (!fields.months.has(date.getUTCMonth() + 1) || !isDay(fields, date.getUTCDate(), date.getUTCDay())) continue;
    const found = nextWithin(fields, date.getTime(), (wall) => wall >= begin && zone.firstTimeOf(wall) > time);
    if (found !== undefined) return zone.firstTimeOf(found);
  }
  return undefined;
};

const nextWithin = (fields: CronFields, day: number, isAfter: (wall: number) => boolean): number | undefined => {
  for (const hour of [...fields.hours].sort((a, b) => a - b)) {
    for (const minute of [...fields.minutes].sort((a, b) => a - b)) {
      const wall = day + hour * 3_600_000 + minute * minuteMs;
      if (isAfter(wall)) return wall;
    }
  }
  return undefined;
};

// When a source is asked next, and whether that is now. Times are milliseconds since the epoch.

/** Most that a poll is put off for the sake of others, and the share of the interval it may be at most. */
const longestJitterMs = 300_000;
const jitterShare = 0.1;

/** 0 ≤ x < 1, the same for a name for ever. */
const fractionOf = (name: string): number => createHash('sha256').update(name).digest().readUInt32BE(0) / 2 ** 32;

/**
 * When to poll after `time`: the schedule's next time, put off by a stable part of a few minutes. Crons of one source are put off alike, so that one
 * request serves them all; different sources are spread. `undefined`: never.
 */
export const nextPollAfter = (schedule: Schedule, source: string, time: number): number | undefined => {
  const next = schedule.next(time);
  if (next === undefined) return undefined;
  const after = schedule.next(next) ?? next + longestJitterMs / jitterShare;
  const window = Math.min(longestJitterMs, (after - next) * jitterShare);
  // To the second: times are kept so in annotations.
  return next + Math.floor((fractionOf(source) * window) / 1000) * 1000;
};

interface PollTimes {
  /** The newest poll, successful or not. `undefined`: never. */
  readonly last: number | undefined;
  /** What was noted then, or written by somebody who wants a poll now. */
  readonly next: number | undefined;
}

/**
 * When the next poll is due; `undefined`: never. A time noted earlier holds, however long it is past: what was missed is caught up by one poll.
 * Nothing noted and never polled: at once.
 */
export const dueTime = (schedule: Schedule | undefined, source: string, times: PollTimes): number | undefined => {
  if (schedule === undefined) return undefined;
  if (times.next !== undefined) return times.next;
  return times.last === undefined ? Number.NEGATIVE_INFINITY : nextPollAfter(schedule, source, times.last);
};
