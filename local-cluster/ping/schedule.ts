// Schedules of PingSource: five fields or six with seconds first, in UTC or a named time zone. As in Knative, a wall time that a clock change
// skips is not caught up, and one that occurs twice counts twice. Called by ping.ts.
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
  /** The next matching time after `time`; undefined if there is none within five years. */
  next(time: Date): Date | undefined;
}

interface PingFields extends CronFields {
  readonly seconds: ReadonlySet<number>;
}

/** Throws InvalidInput with the invalid part. */
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

const invalid = (schedule: string, problem: string): InvalidInput =>
  new InvalidInput(`schedule ${JSON.stringify(schedule)} ${problem}`, [{ field: 'spec.schedule', message: problem }]);

const horizonMs = 5 * 366 * 86_400_000;

const quarterMs = 900_000;
const hourMs = 3_600_000;

/** Skips times that cannot match, in units that align with every zone's wall clock. */
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
 * Milliseconds to skip; 0 if everything matches. A wrong month or day is skipped by a jump that ends well before its end, since the wall clock
 * may shift by up to two hours meanwhile.
 */
const stepFrom = (wall: Date, fields: PingFields): number => {
  const [day, isMonth] = [wall.getUTCDate(), fields.months.has(wall.getUTCMonth() + 1)];
  if (!isMonth && day < 27) return (27 - day) * 24 * hourMs;
  if (!isMonth || !isDay(fields, day, wall.getUTCDay())) return Math.max(quarterMs, (21 - wall.getUTCHours()) * hourMs);
  if (!fields.hours.has(wall.getUTCHours())) return quarterMs;
  if (!fields.minutes.has(wall.getUTCMinutes())) return 60_000;
  return fields.seconds.has(wall.getUTCSeconds()) ? 0 : 1000;
};
