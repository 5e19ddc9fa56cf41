// The five fields of a cron expression as sets of numbers. Pure; called by schedule.ts.

export interface CronFields {
  readonly minutes: ReadonlySet<number>;
  readonly hours: ReadonlySet<number>;
  readonly days: ReadonlySet<number>;
  readonly months: ReadonlySet<number>;
  readonly weekdays: ReadonlySet<number>;
  /** One of the two day fields is a star: then the other decides alone. Otherwise a day matches when either does. */
  readonly isEitherDayFree: boolean;
}

interface Rule {
  readonly name: string;
  readonly min: number;
  readonly max: number;
  readonly names?: readonly string[];
}

const rules = [
  { name: 'minute', min: 0, max: 59 },
  { name: 'hour', min: 0, max: 23 },
  { name: 'day of month', min: 1, max: 31 },
  { name: 'month', min: 1, max: 12, names: 'jan feb mar apr may jun jul aug sep oct nov dec'.split(' ') },
  { name: 'day of week', min: 0, max: 7, names: 'sun mon tue wed thu fri sat'.split(' ') },
] as const satisfies readonly Rule[];

const valueOf = (text: string, { names, min, max }: Rule): number | undefined => {
  const index = names?.indexOf(text.toLowerCase()) ?? -1;
  if (index !== -1) return index + min;
  const value = /^\d{1,2}$/.test(text) ? Number(text) : Number.NaN;
  return value >= min && value <= max ? value : undefined;
};

/** `*`, `?`, `5`, `mon-fri`; a lone number with a step goes on to the field's end. */
const boundsOf = (range: string, rule: Rule, hasStep: boolean): readonly [number, number] | undefined => {
  if (range === '*' || range === '?') return [rule.min, rule.name === 'day of week' ? 6 : rule.max];
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

type FieldSet = ReadonlySet<number>;
type FieldSets = readonly [FieldSet, FieldSet, FieldSet, FieldSet, FieldSet];

/** `problem` completes a sentence about the schedule. */
export const parseFields = (text: string): CronFields | { readonly problem: string } => {
  const parts = text.trim().split(/\s+/);
  if (parts.length !== 5)
    return { problem: `must have five fields (minute hour day month weekday), and has ${parts.length}` };
  const fields = rules.map((rule, index) => fieldOf(parts[index] ?? '', rule));
  for (const field of fields) if ('problem' in field) return field;
  const [minutes, hours, days, months, weekdays] = fields as unknown as FieldSets;
  const isEitherDayFree = /^[*?]/.test(parts[2] ?? '') || /^[*?]/.test(parts[4] ?? '');
  return { minutes, hours, days, months, weekdays, isEitherDayFree };
};

export const isDay = (fields: CronFields, day: number, weekday: number): boolean => {
  const [isMonthDay, isWeekday] = [fields.days.has(day), fields.weekdays.has(weekday)];
  return fields.isEitherDayFree ? isMonthDay && isWeekday : isMonthDay || isWeekday;
};
