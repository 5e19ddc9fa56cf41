// When a source is asked next, and whether that is now. Times are milliseconds since the epoch. Pure.
import { createHash } from 'node:crypto';
import type { Schedule } from '#shared/golden/schedule.ts';

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

export interface PollTimes {
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
