// Schedules as PingSource has them: five fields or six with seconds first, in UTC or a named time zone. As in Knative, a wall time that a clock change
// skips is not made up for, and one that comes twice counts twice. Called by ping.ts.
import {
  type CronFields,
  type Zone,
  cronDescriptors,
  isDay,
  openZone,
  parseFields,
  parseSeconds,
} from '#shared/runtime/cron.ts';
import { InvalidInput } from '#shared/runtime/errors.ts';

export interface Schedule {
  /** The first time after `time` that matches; undefined when there is none within five years. */
  next(time: Date): Date | undefined;
}

interface PingFields extends CronFields {
  readonly seconds: ReadonlySet<number>;
}

/** Throws InvalidInput that names the faulty part. */
export const parseSchedule = (text: string, timeZone = 'UTC'): Schedule => {
  const parts = (cronDescriptors.get(text.trim()) ?? text).trim().split(/\s+/);
  if (parts.length === 5) parts.unshift('0');
  if (parts.length !== 6) throw invalid(text, 'must have five fields, or six with seconds first');
  const seconds = parseSeconds(parts[0] ?? '');
  if ('problem' in seconds) throw invalid(text, seconds.problem);
  const fields = parseFields(parts.slice(1).join(' '));
  if ('problem' in fields) throw invalid(text, fields.problem);
  const zone = openZone(timeZone);
  if (zone === undefined) throw invalid(text, `has an unknown time zone ${timeZone}`);
  return { next: (time) => next(time, { ...fields, seconds }, zone) };
};

const invalid = (schedule: string, words: string): InvalidInput =>
  new InvalidInput(`schedule ${JSON.stringify(schedule)} ${words}`, [{ field: 'spec.schedule', message: words }]);

const horizonMs = 5 * 366 * 86_400_000;

const quarterMs = 900_000;
const hourMs = 3_600_000;

/** Steps over what cannot match, in units that every zone's wall clock has boundaries at. */
const next = (after: Date, fields: PingFields, zone: Zone): Date | undefined => {
  let time = Math.floor(after.getTime() / 1000) * 1000 + 1000;
  while (time - after.getTime() < horizonMs) {
    const step = stepFrom(new Date(zone.wallOf(time)), fields);
    if (step === 0) return new Date(time);
    const unit = Math.min(step, quarterMs);
    time = Math.floor(time / unit) * unit + step;
  }
  return undefined;
};

/**
 * Milliseconds to go forward; 0 when everything matches. A wrong month or day is left by a jump that ends well before its end, since the
 * wall clock may shift by up to two hours on the way.
 */
const stepFrom = (wall: Date, fields: PingFields): number => {
  const [day, isMonth] = [wall.getUTCDate(), fields.months.has(wall.getUTCMonth() + 1)];
  if (!isMonth && day < 27) return (27 - day) * 24 * hourMs;
  if (!isMonth || !isDay(fields, day, wall.getUTCDay())) return Math.max(quarterMs, (21 - wall.getUTCHours()) * hourMs);
  if (!fields.hours.has(wall.getUTCHours())) return quarterMs;
  if (!fields.minutes.has(wall.getUTCMinutes())) return 60_000;
  return fields.seconds.has(wall.getUTCSeconds()) ? 0 : 1000;
};
