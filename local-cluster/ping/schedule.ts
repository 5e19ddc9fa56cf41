// Cron schedules as PingSource has them, in UTC or a named time zone. Called by ping.ts.
import { InvalidInput } from '#shared/runtime/errors.ts';

export interface Schedule {
  /** The first time after `time` that matches; undefined when there is none within five years. */
  next(time: Date): Date | undefined;
}

const fields = [
  { name: 'second', min: 0, max: 59 },
  { name: 'minute', min: 0, max: 59 },
  { name: 'hour', min: 0, max: 23 },
  { name: 'day of month', min: 1, max: 31 },
  { name: 'month', min: 1, max: 12, names: 'jan feb mar apr may jun jul aug sep oct nov dec'.split(' ') },
  { name: 'day of week', min: 0, max: 6, names: 'sun mon tue wed thu fri sat'.split(' ') },
] as const;

const descriptors: Readonly<Record<string, string>> = {
  '@yearly': '0 0 1 1 *',
  '@annually': '0 0 1 1 *',
  '@monthly': '0 0 1 * *',
  '@weekly': '0 0 * * 0',
  '@daily': '0 0 * * *',
  '@midnight': '0 0 * * *',
  '@hourly': '0 * * * *',
};

interface Field {
  readonly values: ReadonlySet<number>;
  /** Whether it is `*` or `*` with a step: then the other of the two day fields decides alone. */
  readonly isStar: boolean;
}

/** Five fields, or six with seconds first, or a descriptor such as `@hourly`. Throws InvalidInput that names the faulty part. */
export const parseSchedule = (text: string, timeZone = 'UTC'): Schedule => {
  const parts = (descriptors[text.trim()] ?? text).trim().split(/\s+/);
  if (parts.length === 5) parts.unshift('0');
  if (parts.length !== 6) throw invalid(text, 'must have five fields, or six with seconds first');
  const parsed = parts.map((part, index) => parseField(part, fields[index] as FieldRule, text));
  const read = createClock(timeZone, text);
  return { next: (time) => next(time, parsed, read) };
};

type FieldRule = {
  readonly name: string;
  readonly min: number;
  readonly max: number;
  readonly names?: readonly string[];
};

const parseField = (part: string, rule: FieldRule, schedule: string): Field => {
  const values = new Set<number>();
  for (const item of part.toLowerCase().split(',')) {
    const range = parseItem(item, rule);
    if (range === undefined) throw invalid(schedule, `has a wrong ${rule.name}: ${item}`);
    const { first, last, step } = range;
    for (let value = first; value <= last; value += step) values.add(rule.name === 'day of week' ? value % 7 : value);
  }
  return { values, isStar: /^[*?]/.test(part) };
};

/** `range` or `range/step`. */
const parseItem = (item: string, rule: FieldRule) => {
  const match = /^([^/]+)(?:\/(\d{1,4}))?$/.exec(item);
  const [first, last] = parseRange(match?.[1] ?? '', rule, match?.[2] !== undefined) ?? [];
  const step = Number(match?.[2] ?? 1);
  if (first === undefined || last === undefined || step < 1 || first > last) return undefined;
  return { first, last, step };
};

const parseRange = (range: string, rule: FieldRule, hasStep: boolean): [number, number] | undefined => {
  if (range === '*' || range === '?') return [rule.min, rule.max];
  const [first, last, ...rest] = range.split('-').map((text) => parseValue(text, rule));
  if (first === undefined || rest.length > 0) return undefined;
  if (range.includes('-')) return last === undefined ? undefined : [first, last];
  return [first, hasStep ? rule.max : first];
};

const parseValue = (text: string, { names, min, max, name }: FieldRule): number | undefined => {
  const index = names?.indexOf(text) ?? -1;
  if (index !== -1) return index + min;
  const value = /^\d+$/.test(text) ? Number(text) : Number.NaN;
  return value >= min && value <= (name === 'day of week' ? 7 : max) ? value : undefined;
};

const invalid = (schedule: string, words: string): InvalidInput =>
  new InvalidInput(`schedule ${JSON.stringify(schedule)} ${words}`, [{ field: 'spec.schedule', message: words }]);

/** Second, minute, hour, day, month and day of week on the wall of the zone. */
type Wall = readonly [number, number, number, number, number, number];

const createClock = (timeZone: string, schedule: string): ((time: number) => Wall) => {
  let format: Intl.DateTimeFormat;
  try {
    const options = {
      second: 'numeric',
      minute: 'numeric',
      hour: 'numeric',
      day: 'numeric',
      month: 'numeric',
      weekday: 'short',
    } as const;
    format = new Intl.DateTimeFormat('en-US', { timeZone, hourCycle: 'h23', ...options });
  } catch {
    throw invalid(schedule, `has an unknown time zone ${timeZone}`);
  }
  return (time) => {
    const parts = Object.fromEntries(format.formatToParts(time).map(({ type, value }) => [type, value]));
    const weekday = fields[5].names.indexOf((parts['weekday'] ?? '').toLowerCase());
    const [second, minute, hour, day, month] = ['second', 'minute', 'hour', 'day', 'month'].map((name) =>
      Number(parts[name]),
    );
    return [second, minute, hour, day, month, weekday] as Wall;
  };
};

const horizonMs = 5 * 366 * 86_400_000;

const quarterMs = 900_000;
const hourMs = 3_600_000;

/** Steps over what cannot match, in units that every zone's wall clock has boundaries at. */
const next = (after: Date, schedule: readonly Field[], read: (time: number) => Wall): Date | undefined => {
  let time = Math.floor(after.getTime() / 1000) * 1000 + 1000;
  while (time - after.getTime() < horizonMs) {
    const step = stepFrom(read(time), schedule);
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
const stepFrom = ([second, minute, hour, day, month, weekday]: Wall, schedule: readonly Field[]): number => {
  const has = (index: number, value: number): boolean => schedule[index]?.values.has(value) ?? false;
  if (!has(4, month) && day < 27) return (27 - day) * 24 * hourMs;
  if (!has(4, month) || !isDay(schedule, has(3, day), has(5, weekday)))
    return Math.max(quarterMs, (21 - hour) * hourMs);
  if (!has(2, hour)) return quarterMs;
  if (!has(1, minute)) return 60_000;
  return has(0, second) ? 0 : 1000;
};

/** When both day fields say something, either suffices. */
const isDay = (schedule: readonly Field[], dayOfMonth: boolean, dayOfWeek: boolean): boolean => {
  const isEither = schedule[3]?.isStar === false && schedule[5]?.isStar === false;
  return isEither ? dayOfMonth || dayOfWeek : dayOfMonth && dayOfWeek;
};
