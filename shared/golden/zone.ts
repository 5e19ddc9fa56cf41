// Wall clocks of time zones. Times are milliseconds since the epoch; a wall time is written as if it were UTC. Pure.

export interface Zone {
  /** What the wall shows at `time`. */
  wallOf(time: number): number;
  /** The first moment the wall shows `wall`; where a clock change skips it, the moment of the change. */
  firstTimeOf(wall: number): number;
}

const dayMs = 86_400_000;
const minuteMs = 60_000;

/** `undefined` for a name that is none. */
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

/** No zone changes its clock twice within two days, so the offsets a day before and after are all there are. */
const firstTime = (wallOf: Zone['wallOf'], wall: number): number => {
  const [before, after] = [wall - dayMs, wall + dayMs].map((time) => wallOf(time) - time) as [number, number];
  const candidates = [wall - before, wall - after].filter((time) => wallOf(time) === wall);
  return candidates.length > 0 ? Math.min(...candidates) : changeBetween(wallOf, wall - dayMs, wall + dayMs);
};

/** The moment, to the minute, at which the offset becomes that of `late`. */
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
