import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { dueTime, nextPollAfter } from '#shared/golden/schedule.ts';
import { judgeRetention } from '#shared/golden/version.ts';
import { type Schedule, parseSchedule } from '#shared/golden/schedule.ts';
import { shortDigest, validatorDigest, versionName } from '#shared/golden/version.ts';

const halfDaily = (parseSchedule('0 */12 * * *') as { readonly value: Schedule }).value;
const minutely = (parseSchedule('* * * * *') as { readonly value: Schedule }).value;
const noon = Date.parse('2026-03-01T12:00:00Z');
const minute = 60_000;

describe('polls', () => {
  it('are put off by a stable few minutes, alike for one source', () => {
    fc.assert(
      fc.property(fc.string(), (source) => {
        const time = nextPollAfter(halfDaily, source, noon - minute)!;
        expect(time).toBe(nextPollAfter(halfDaily, source, noon - 30 * minute));
        expect(time - noon).toBeGreaterThanOrEqual(0);
        expect(time - noon).toBeLessThan(5 * minute);
      }),
    );
  });

  it('are spread over the sources', () => {
    const times = Array.from({ length: 100 }, (_, index) => nextPollAfter(halfDaily, `quay.io/a/${index}`, noon - 1)!);
    const perMinute = [0, 1, 2, 3, 4].map(
      (at) => times.filter((time) => Math.floor((time - noon) / minute) === at).length,
    );
    expect(Math.min(...perMinute)).toBeGreaterThan(8);
  });

  it('are put off by a tenth of a short interval at most', () => {
    const time = nextPollAfter(minutely, 'quay.io/a', noon)!;
    expect(time - noon - minute).toBeLessThan(6000);
  });

  it.each([
    ['never polled: at once', { last: undefined, next: undefined }, Number.NEGATIVE_INFINITY],
    ['the time noted holds', { last: noon, next: noon + 7 }, noon + 7],
    ['a time long past is one poll', { last: noon - 1e10, next: noon - 1e9 }, noon - 1e9],
  ])('%s', (_, times, expected) => {
    expect(dueTime(halfDaily, 'x', times)).toBe(expected);
  });

  it('are never due without a schedule', () => {
    expect(dueTime(undefined, 'x', { last: undefined, next: undefined })).toBe(undefined);
  });
});

describe('versions', () => {
  it.each([
    [`sha256:${'ab'.repeat(32)}`, { value: 'abababababab' }],
    ['uid:0a1b2c3d-4e5f-6789', { value: '0a1b2c3d-4e5' }],
    [`validator:${'cd'.repeat(32)}`, { value: 'cdcdcdcdcdcd' }],
    ['sha234:abababababababab', { problem: 'Digest has no supported prefix' }],
    ['sha256:01234567890', { problem: 'Digest is too short' }],
  ])('of %s', (digest, expected) => {
    expect(shortDigest(digest)).toEqual(expected);
  });

  it('are named after the data source and its digest, at any length', () => {
    expect(versionName('fedora', 'abababababab')).toBe('fedora-abababababab');
    const long = versionName('a'.repeat(250), 'abababababab');
    expect(long.length).toBe(253);
    expect(long.endsWith('-abababababab')).toBe(true);
    expect(long).not.toBe(versionName(`${'a'.repeat(249)}b`, 'abababababab'));
  });

  it('tell validators apart', () => {
    expect(validatorDigest(['u', '"a"', undefined])).not.toBe(validatorDigest(['u', undefined, '"a"']));
  });
});

describe('retention', () => {
  const version = (name: string, day: number) => ({
    name,
    lastUse: `2026-03-${String(day).padStart(2, '0')}T00:00:00Z`,
  });
  const versions = [version('a', 1), version('b', 2), version('c', 3), version('d', 4)];
  const none = new Map<string, string>();
  const outdatedVersions = (...asked: Parameters<typeof judgeRetention>): readonly string[] =>
    judgeRetention(...asked)
      .flatMap(({ name, keptBy }) => (keptBy === undefined ? [name] : []))
      .reverse();

  it.each([
    ['keeps the current and the newest others', { keep: 2, current: 'd', inUse: none }, ['a', 'b']],
    ['counts the current one, however old', { keep: 2, current: 'a', inUse: none }, ['b', 'c']],
    ['keeps one at least', { keep: 0, current: 'd', inUse: none }, ['a', 'b', 'c']],
    ['never takes what is in use', { keep: 1, current: 'd', inUse: new Map([['b', 'a clone']]) }, ['a', 'c']],
    ['takes nothing when there are few', { keep: 9, current: 'd', inUse: none }, []],
  ])('%s', (_, retention, expected) => {
    expect(outdatedVersions(versions, retention)).toEqual(expected);
  });

  it('takes an unknown last use for the oldest, and fractions of seconds as numbers', () => {
    const odd = [
      { name: 'x', lastUse: '' },
      { name: 'y', lastUse: '2026-03-01T00:00:00.5Z' },
      { name: 'z', lastUse: '2026-03-01T00:00:00.123456789Z' },
    ];
    expect(outdatedVersions(odd, { keep: 2, current: 'q', inUse: none })).toEqual(['x', 'z']);
  });

  const day = 86_400_000;
  const now = Date.parse('2026-03-05T00:00:00Z');
  const [young, old] = ['2026-03-04T00:00:00Z', '2026-01-01T00:00:00Z'];
  it.each([
    ['is too young', { maxAge: 30 * day }, { created: young, lastUse: old }, 'it is younger than 30d'],
    ['is old enough', { maxAge: 30 * day }, { created: old, lastUse: young }, undefined],
    ['was used lately', { unusedFor: 7 * day }, { created: old, lastUse: young }, 'it was used within 7d'],
    ['was not used lately', { unusedFor: 7 * day }, { created: young, lastUse: old }, undefined],
    [
      'has one limit left',
      { maxAge: day, unusedFor: 7 * day },
      { created: old, lastUse: young },
      'it was used within 7d',
    ],
    ['has none left', { maxAge: day, unusedFor: 7 * day }, { created: old, lastUse: old }, undefined],
    ['has no age that is known', { maxAge: day }, { lastUse: old }, 'it is younger than 24h'],
    ['has a reader', {}, { name: 'b', created: old, lastUse: old }, 'a clone'],
  ])('says what keeps a version that %s', (_what, limits, one, keptBy) => {
    const [judged] = judgeRetention([{ name: 'x', ...one }], {
      keep: 1,
      current: 'q',
      inUse: new Map([['b', 'a clone']]),
      now,
      ...limits,
    });
    expect(judged?.keptBy).toBe(keptBy);
  });

  it('keeps more with a limit than without, whatever the clock says', () => {
    const time = fc.integer({ min: 0, max: 400 }).map((days) => new Date(now - days * day).toISOString());
    const some = fc.array(fc.record({ created: time, lastUse: time }), { minLength: 1, maxLength: 8 });
    const limit = fc.option(fc.integer({ min: 0, max: 300 * day }), { nil: undefined });
    fc.assert(
      fc.property(some, limit, limit, fc.integer(), (all, maxAge, unusedFor, jump) => {
        const found = all.map((one, index) => ({ name: `v${index}`, ...one }));
        const rest = { keep: 2, current: 'v0', inUse: new Map([['v1', 'a pin']]) };
        const gone = outdatedVersions(found, { ...rest, maxAge, unusedFor, now: now + jump });
        expect(outdatedVersions(found, rest)).toEqual(expect.arrayContaining([...gone]));
        expect(gone.filter((name) => name === 'v0' || name === 'v1')).toEqual([]);
      }),
    );
  });

  it('never takes the current version, and leaves at least as many as asked for', () => {
    const names = fc.uniqueArray(fc.string({ minLength: 1, maxLength: 3 }), { minLength: 1, maxLength: 9 });
    fc.assert(
      fc.property(names, fc.integer({ min: -1, max: 5 }), (all, keep) => {
        const current = all[0]!;
        const gone = outdatedVersions(
          all.map((name, index) => version(name, ((index * 7) % 28) + 1)),
          { keep, current, inUse: none },
        );
        expect(gone).not.toContain(current);
        expect(all.length - gone.length).toBe(Math.min(all.length, Math.max(1, keep)));
      }),
    );
  });
});
