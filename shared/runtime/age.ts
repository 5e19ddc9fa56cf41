// Durations as kubectl prints them: `45s`, `5m30s`, `3h12m`, `2d4h`, `15d`, `1y20d`; and durations as users write them.

const second = 1000;
const minute = 60 * second;
const hour = 60 * minute;
const day = 24 * hour;
const year = 365 * day;

const pair = (milliseconds: number, big: [number, string], small: [number, string]): string => {
  const rest = Math.floor((milliseconds % big[0]) / small[0]);
  const whole = `${Math.floor(milliseconds / big[0])}${big[1]}`;
  return rest === 0 ? whole : `${whole}${rest}${small[1]}`;
};

/** The format of durations below each limit (milliseconds). */
const forms: readonly [number, (span: number) => string][] = [
  [-second, () => '<invalid>'],
  [0, () => '0s'],
  [2 * minute, (span) => `${Math.floor(span / second)}s`],
  [10 * minute, (span) => pair(span, [minute, 'm'], [second, 's'])],
  [3 * hour, (span) => `${Math.floor(span / minute)}m`],
  [8 * hour, (span) => pair(span, [hour, 'h'], [minute, 'm'])],
  [2 * day, (span) => `${Math.floor(span / hour)}h`],
  [8 * day, (span) => pair(span, [day, 'd'], [hour, 'h'])],
  [2 * year, (span) => `${Math.floor(span / day)}d`],
  [8 * year, (span) => pair(span, [year, 'y'], [day, 'd'])],
];

/** A span in milliseconds. */
export const toSpan = (milliseconds: number): string =>
  forms.find(([limit]) => milliseconds < limit)?.[1](milliseconds) ?? `${Math.floor(milliseconds / year)}y`;

/** The time since an RFC 3339 time stamp; `<unknown>` without one. */
export const toAge = (time: unknown, now: Date): string => {
  if (typeof time !== 'string') return '<unknown>';
  const at = Date.parse(time);
  return Number.isNaN(at) ? '<invalid>' : toSpan(now.getTime() - at);
};

const units: Readonly<Record<string, number>> = { d: day, h: hour, m: minute, s: second, ms: 1 };

/** Milliseconds of a span as it is written: `90s`, `1h30m`, `7d`; `undefined` where it is none. */
export const parseSpan = (text: string): number | undefined => {
  if (!/^(?:\d+(?:\.\d+)?(?:d|h|ms|m|s))+$/.test(text)) return undefined;
  const parts = [...text.matchAll(/(\d+(?:\.\d+)?)(d|h|ms|m|s)/g)];
  return parts.reduce((sum, [, count, unit = 's']) => sum + Number(count) * (units[unit] ?? 0), 0);
};
