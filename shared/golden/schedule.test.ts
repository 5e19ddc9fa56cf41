import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { type Schedule, parseSchedule } from '#shared/golden/schedule.ts';
import { openZone } from '#shared/runtime/cron.ts';

const scheduleOf = (text: string): Schedule => {
  const parsed = parseSchedule(text);
  if ('problem' in parsed) throw new Error(`${text} ${parsed.problem}`);
  return parsed.value;
};

/** The next times, as ISO in UTC, to the minute. */
const timesOf = (text: string, after: string, count = 1): (string | undefined)[] => {
  const schedule = scheduleOf(text);
  const times: (string | undefined)[] = [];
  let time: number | undefined = Date.parse(after);
  for (let index = 0; index < count && time !== undefined; index += 1) {
    time = schedule.next(time);
    times.push(time === undefined ? undefined : new Date(time).toISOString().slice(0, 16));
  }
  return times;
};

describe('schedules', () => {
  it.each([
    ['0 */12 * * *', '2026-03-01T11:59:59Z', ['2026-03-01T12:00', '2026-03-02T00:00']],
    ['42 3/12 * * *', '2026-03-01T03:42:00Z', ['2026-03-01T15:42', '2026-03-02T03:42']],
    ['* * * * *', '2026-03-01T00:00:30Z', ['2026-03-01T00:01', '2026-03-01T00:02']],
    ['0 0 31 * *', '2026-03-31T00:00:00Z', ['2026-05-31T00:00', '2026-07-31T00:00']],
    ['0 0 29 2 *', '2026-03-01T00:00:00Z', ['2028-02-29T00:00', '2032-02-29T00:00']],
    ['0 0 1 * mon', '2026-03-01T00:00:00Z', ['2026-03-02T00:00', '2026-03-09T00:00']],
    ['0 0 */2 * mon', '2026-03-01T00:00:00Z', ['2026-03-09T00:00', '2026-03-23T00:00']],
    ['0 0 * * 7', '2026-03-01T00:00:00Z', ['2026-03-08T00:00', '2026-03-15T00:00']],
    ['0 0 * * 5/2', '2026-03-01T00:00:00Z', ['2026-03-06T00:00', '2026-03-13T00:00']],
    ['5-10/5,30 4 * jan,DEC ?', '2026-12-31T04:10:00Z', ['2026-12-31T04:30', '2027-01-01T04:05']],
    ['@daily', '2026-03-01T00:00:00Z', ['2026-03-02T00:00', '2026-03-03T00:00']],
    ['@weekly', '2026-03-01T00:00:00Z', ['2026-03-08T00:00', '2026-03-15T00:00']],
    ['@every 90m', '2026-03-01T00:00:00Z', ['2026-03-01T01:30', '2026-03-01T03:00']],
    ['TZ=Asia/Tokyo 0 9 * * *', '2026-03-01T00:00:00Z', ['2026-03-02T00:00', '2026-03-03T00:00']],
    ['CRON_TZ=America/New_York @daily', '2026-03-01T00:00:00Z', ['2026-03-01T05:00', '2026-03-02T05:00']],
  ])('%s after %s', (text, after, expected) => {
    expect(timesOf(text, after, 2)).toEqual(expected);
  });

  it.each([
    ['', 'must have five fields'],
    ['* * * *', 'and has 4'],
    ['0 0 0 * * *', 'and has 6'],
    ['60 * * * *', 'has a wrong minute: 60'],
    ['* 24 * * *', 'has a wrong hour: 24'],
    ['* * 0 * *', 'has a wrong day of month: 0'],
    ['* * * 13 *', 'has a wrong month: 13'],
    ['* * * * 8', 'has a wrong day of week: 8'],
    ['*/0 * * * *', 'has a wrong minute: */0'],
    ['9-5 * * * *', 'has a wrong minute: 9-5'],
    ['1,,2 * * * *', 'has a wrong minute: '],
    ['1-2-3 * * * *', 'has a wrong minute: 1-2-3'],
    ['0 0 31 2 *', 'never occurs'],
    ['0 0 30 2 *', 'never occurs'],
    ['0 0 30,31 feb ?', 'never occurs'],
    ['* * 31 2,4,6,9,11 *', 'never occurs'],
    ['TZ=Europe/Berlin 0 0 31 4 *', 'never occurs'],
    ['@fortnightly', 'has an unknown descriptor @fortnightly'],
    ['valueOf', ''],
    ['@every soon', 'needs a duration'],
    ['@every 10ms', 'needs a duration'],
    ['TZ=Mars/Olympus * * * * *', 'has an unknown time zone Mars/Olympus'],
  ])('refuses %j', (text, words) => {
    expect(parseSchedule(text)).toEqual({ problem: expect.stringContaining(words) });
  });
});

describe('a schedule', () => {
  it('is refused where it never occurs, and only there', () => {
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 31 }), fc.integer({ min: 1, max: 12 }), (day, month) => {
        const parsed = parseSchedule(`0 0 ${day} ${month} *`);
        // 2028 is a leap year.
        const isDay = new Date(Date.UTC(2028, month - 1, day)).getUTCMonth() === month - 1;
        expect('value' in parsed).toBe(isDay);
        expect('value' in parsed && parsed.value.next(Date.parse('2096-03-01')) === undefined).toBe(false);
        // Either day field suffices.
        expect(parseSchedule(`0 0 ${day} ${month} mon`)).toHaveProperty('value');
      }),
    );
  });
});

describe('clock changes', () => {
  it('runs a skipped time once, right after', () => {
    expect(timesOf('TZ=Europe/Berlin 30 2 * * *', '2026-03-28T12:00:00Z', 2)).toEqual([
      '2026-03-29T01:00',
      '2026-03-30T00:30',
    ]);
    expect(timesOf('TZ=Europe/Berlin */15 2 * * *', '2026-03-28T12:00:00Z', 2)).toEqual([
      '2026-03-29T01:00',
      '2026-03-30T00:00',
    ]);
  });

  it('runs a repeated time once', () => {
    expect(timesOf('TZ=Europe/Berlin 30 2 * * *', '2026-10-24T12:00:00Z', 2)).toEqual([
      '2026-10-25T00:30',
      '2026-10-26T01:30',
    ]);
  });

  it('knows changes of half an hour', () => {
    // Lord Howe goes from 02:00 to 02:30 on 4 October 2026, which is 15:30 UTC on the 3rd.
    expect(timesOf('TZ=Australia/Lord_Howe 15 2 * * *', '2026-10-03T12:00:00Z')).toEqual(['2026-10-03T15:30']);
  });

  const minute = 60_000;
  const zones = ['Europe/Berlin', 'America/New_York', 'Australia/Lord_Howe', 'America/St_Johns', 'Africa/Cairo', 'UTC'];
  /** Around a change of each of them. */
  const starts = [
    '2026-03-29T00:00Z',
    '2026-10-25T00:00Z',
    '2026-03-08T05:00Z',
    '2026-11-01T04:00Z',
    '2026-10-03T14:00Z',
    '2026-04-04T14:00Z',
    '2026-04-23T21:00Z',
  ];
  const list = (max: number) => fc.uniqueArray(fc.nat(max), { minLength: 1, maxLength: 4 });

  /** Walks minute by minute: a wall time counts the first time it is shown, skipped ones when the clock jumps over them. */
  const naiveNext = (
    zone: string,
    isMatch: (wall: number) => boolean,
    time: number,
    limit: number,
  ): number | undefined => {
    const clock = openZone(zone)!;
    const wallOf = (at: number) => clock.wallOf(at);
    const begin = Math.floor(time / minute) * minute;
    let reached = wallOf(begin);
    for (let before = begin - 180 * minute; before <= begin; before += minute)
      reached = Math.max(reached, wallOf(before));
    for (let at = begin + minute; at <= begin + limit; at += minute) {
      const wall = wallOf(at);
      for (let skipped = reached + minute; skipped <= wall; skipped += minute) if (isMatch(skipped)) return at;
      reached = Math.max(reached, wall);
    }
    return undefined;
  };

  it('agrees with walking every minute', () => {
    const limit = 600 * minute;
    fc.assert(
      fc.property(
        fc.constantFrom(...zones),
        fc.tuple(fc.constantFrom(...starts), fc.nat(239)),
        fc.tuple(list(59), list(23)),
        (zone, [start, offset], [minutes, hours]) => {
          const time = Date.parse(start) + (offset - 120) * minute;
          const isMatch = (wall: number) => {
            const date = new Date(wall);
            return minutes.includes(date.getUTCMinutes()) && hours.includes(date.getUTCHours());
          };
          const expected = naiveNext(zone, isMatch, time, limit);
          const found = scheduleOf(`TZ=${zone} ${minutes.join(',')} ${hours.join(',')} * * *`).next(time)!;
          expect(found <= time + limit ? found : undefined).toBe(expected);
        },
      ),
      { numRuns: 60 },
    );
  });

  it('always moves forward', () => {
    fc.assert(
      fc.property(
        fc.constantFrom(...zones),
        fc.date({ min: new Date('2020-01-01'), max: new Date('2040-01-01'), noInvalidDate: true }),
        (zone, date) => {
          const schedule = scheduleOf(`TZ=${zone} 17 */5 * * *`);
          const first = schedule.next(date.getTime())!;
          expect(first).toBeGreaterThan(date.getTime());
          expect(schedule.next(first)!).toBeGreaterThan(first);
        },
      ),
      { numRuns: 50 },
    );
  });
});
