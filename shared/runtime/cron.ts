// Cron expressions as sets of numbers, and wall clocks of time zones. Pure; used by the schedules of crons and of ping sources.

const dayMs = 86_400_000;
const minuteMs = 60_000;

/** Shortcuts for five fields. */
export const cronDescriptors: ReadonlyMap<string, string> = new Map(
  Object.entries({
    '@yearly': '0 0 1 1 *',
    '@annually': '0 0 1 1 *',
    '@monthly': '0 0 1 * *',
    '@weekly': '0 0 * * 0',
    '@daily': '0 0 * * *',
    '@midnight': '0 0 * * *',
    '@hourly': '0 * * * *',
  }),
);

export interface CronFields {
  readonly minutes: ReadonlySet<number>;
  readonly hours: ReadonlySet<number>;
  readonly days: ReadonlySet<number>;
  readonly months: ReadonlySet<number>;
  readonly weekdays: ReadonlySet<number>;
  /** One of the two day fields is a star: the other one decides alone. Otherwise a day matches if either field does. */
  readonly isEitherDayFree: boolean;
}

interface Rule {
  readonly name: string;
  readonly min: number;
  readonly max: number;
  readonly names?: readonly string[];
}

const rules = {
  minute: { name: 'minute', min: 0, max: 59 },
  hour: { name: 'hour', min: 0, max: 23 },
  day: { name: 'day of month', min: 1, max: 31 },
  month: { name: 'month', min: 1, max: 12, names: 'jan feb mar apr may jun jul aug sep oct nov dec'.split(' ') },
  weekday: { name: 'day of week', min: 0, max: 6, names: 'sun mon tue wed thu fri sat'.split(' ') },
} as const satisfies Readonly<Record<string, Rule>>;

const valueOf = (text: string, { name, names, min, max }: Rule): number | undefined => {
  const index = names?.indexOf(text.toLowerCase()) ?? -1;
  if (index !== -1) return index + min;
  const value = /^\d{1,2}$/.test(text) ? Number(text) : Number.NaN;
  // Sunday may be 7 too.
  return value >= min && value <= (name === 'day of week' ? 7 : max) ? value : undefined;
};

/** `*`, `?`, `5`, `mon-fri`; a single number with a step extends to the end of the field. */
const boundsOf = (range: string, rule: Rule, hasStep: boolean): readonly [number, number] | undefined => {
  if (range === '*' || range === '?') return [rule.min, rule.max];
  const [from = '', to, ...more] = range.split('-');
  const first = valueOf(from, rule);
  const last = to === undefined ? (hasStep ? rule.max : first) : valueOf(to, rule);
  if (more.length > 0 || first === undefined || last === undefined || first > last) return undefined;
  return [first, last];
};

const valuesOf = (item: string, rule: Rule): readonly number[] | undefined => {
  const match = /^([^/]+)(?:\/(\d{1,4}))?$/.exec(item);
  const step = Number(match?.[2] ?? 1);
  const bounds = boundsOf(match?.[1] ?? '', rule, match?.[2] !== undefined);
  if (bounds === undefined || step < 1) return undefined;
  const [first, last] = bounds;
  return Array.from({ length: Math.floor((last - first) / step) + 1 }, (_, index) => first + index * step);
};

const fieldOf = (text: string, rule: Rule): ReadonlySet<number> | { readonly problem: string } => {
  const values = new Set<number>();
  for (const item of text.split(',')) {
    const found = valuesOf(item, rule);
    if (found === undefined) return { problem: `has a wrong ${rule.name}: ${item}` };
    for (const value of found) values.add(rule.name === 'day of week' ? value % 7 : value);
  }
  return values;
};

/** The optional seconds field before the five fields. */
export const parseSeconds = (text: string): ReadonlySet<number> | { readonly problem: string } =>
  fieldOf(text, { name: 'second', min: 0, max: 59 });

/** `problem` completes a sentence about the schedule. */
export const parseFields = (schedule: string): CronFields | { readonly problem: string } => {
  const parts = schedule.trim().split(/\s+/);
  if (parts.length !== 5)
    return { problem: `must have five fields (minute hour day month weekday), and has ${parts.length}` };
  const problems: string[] = [];
  const read = (text: string, rule: Rule): ReadonlySet<number> => {
    const field = fieldOf(text, rule);
    if (!('problem' in field)) return field;
    problems.push(field.problem);
    return new Set();
  };
  const [minute = '', hour = '', day = '', month = '', weekday = ''] = parts;
  const fields: CronFields = {
    minutes: read(minute, rules.minute),
    hours: read(hour, rules.hour),
    days: read(day, rules.day),
    months: read(month, rules.month),
    weekdays: read(weekday, rules.weekday),
    isEitherDayFree: /^[*?]/.test(day) || /^[*?]/.test(weekday),
  };
  const [problem] = problems;
  return problem === undefined ? fields : { problem };
};

export const isDay = (fields: CronFields, day: number, weekday: number): boolean => {
  const [isMonthDay, isWeekday] = [fields.days.has(day), fields.weekdays.has(weekday)];
  return fields.isEitherDayFree ? isMonthDay && isWeekday : isMonthDay || isWeekday;
};

// Times are milliseconds since the epoch; a wall time is written as if it were UTC.

export interface Zone {
  /** The wall time at `time`. */
  wallOf(time: number): number;
  /** The first moment with the wall time `wall`; if a clock change skips it, the moment of the change. */
  firstTimeOf(wall: number): number;
}

/** `undefined` for an unknown name. */
export const openZone = (name: string): Zone | undefined => {
  if (name === 'UTC') return { wallOf: (time) => time, firstTimeOf: (wall) => wall };
  const format = formatOf(name);
  if (format === undefined) return undefined;
  const wallOf = (time: number): number => {
    const parts = Object.fromEntries(format.formatToParts(time).map(({ type, value }) => [type, Number(value)]));
    const { year = 0, month = 1, day = 1, hour = 0, minute = 0, second = 0 } = parts;
    return Date.UTC(year, month - 1, day, hour, minute, second);
  };
  return { wallOf, firstTimeOf: (wall) => firstTime(wallOf, wall) };
};

const formatOf = (timeZone: string): Intl.DateTimeFormat | undefined => {
  try {
    return new Intl.DateTimeFormat('en-US', {
      timeZone,
      hourCycle: 'h23',
      year: 'numeric',
      month: 'numeric',
      day: 'numeric',
      hour: 'numeric',
      minute: 'numeric',
      second: 'numeric',
    });
  } catch {
    return undefined;
  }
};

/** No zone changes its clock twice within two days, so only the offsets one day before and one day after are possible. */
const firstTime = (wallOf: Zone['wallOf'], wall: number): number => {
  const [before, after] = [wall - dayMs, wall + dayMs].map((time) => wallOf(time) - time) as [number, number];
  const candidates = [wall - before, wall - after].filter((time) => wallOf(time) === wall);
  return candidates.length > 0 ? Math.min(...candidates) : changeBetween(wallOf, wall - dayMs, wall + dayMs);
};

/** The minute at which the offset changes to that of `late`. */
const changeBetween = (wallOf: Zone['wallOf'], early: number, late: number): number => {
  const offset = (time: number): number => wallOf(time) - time;
  const last = offset(late);
  let [low, high] = [Math.floor(early / minuteMs), Math.ceil(late / minuteMs)];
  while (high - low > 1) {
    const middle = Math.floor((low + high) / 2);
    if (offset(middle * minuteMs) === last) high = middle;
    else low = middle;
  }
  return high * minuteMs;
};
