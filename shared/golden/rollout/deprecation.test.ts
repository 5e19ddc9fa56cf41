// When versions and channels are deprecated: by age and by hand, decided anew from times.
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { annotations } from '#shared/api/names.ts';
import {
  deprecationIn,
  deprecationOfChannel,
  deprecationOfVersion,
  isDeprecationUpToDate,
  toMark,
} from '#shared/golden/rollout/deprecation.ts';

const day = 86_400_000;
const arrived = '2026-01-01T00:00:00Z';
const start = Date.parse(arrived);
const version = { name: 'fedora-1', arrived };
const aging = { deprecation: { after: '60d', obsoleteAfter: '120d', replacement: 'next' } };
const reason = 'CVE';

type Rules = Parameters<typeof deprecationOfVersion>[0];

describe('a version', () => {
  it.each<[what: string, rules: Rules, days: number, expected: object | undefined]>([
    ['without rules', {}, 9999, undefined],
    ['that is young', aging, 59.9, undefined],
    ['of the age', aging, 60, { state: 'Deprecated', since: '2026-03-02T00:00:00Z', replacement: 'next' }],
    ['that is older', aging, 120, { state: 'Obsolete', since: '2026-05-01T00:00:00Z' }],
    ['that is only to be obsolete', { deprecation: { obsoleteAfter: '1d' } }, 2, { state: 'Obsolete' }],
    ['by hand', { deprecated: [{ version: 'fedora-1', reason, by: 'jane' }] }, 0, { state: 'Deprecated', by: 'jane' }],
    ['of another mark', { deprecated: [{ version: 'fedora-2', reason }] }, 0, undefined],
    ['of a channel that is deprecated', { deprecated: [{ channel: 'stable', reason }] }, 0, undefined],
    ['by hand and older', { ...aging, deprecated: [{ version: 'fedora-1', reason }] }, 130, { state: 'Obsolete' }],
    [
      'obsolete by hand and young',
      { ...aging, deprecated: [{ version: 'fedora-1', reason, obsolete: true }] },
      61,
      { state: 'Obsolete', message: reason },
    ],
  ])('%s', (_what, rules, days, expected) => {
    expect([deprecationOfVersion(rules, version, start + days * day)]).toMatchObject([expected]);
  });

  it('without a time that can be read has no age', () => {
    expect(deprecationOfVersion(aging, { name: 'x', arrived: 'once' }, start + 9999 * day)).toBe(undefined);
  });

  it('is what its times say, whatever the clock said before', () => {
    fc.assert(
      fc.property(fc.array(fc.integer({ min: -400, max: 4000 }), { minLength: 1 }), (clock) => {
        const policy = { spec: aging, status: { versions: [{ ...version }] } } as never;
        const versions = (policy as { status: { versions: { deprecation?: object | undefined }[] } }).status.versions;
        for (const days of clock) {
          const now = start + days * day;
          const found = deprecationOfVersion(aging, version, now);
          expect(found?.state).toBe(days >= 120 ? 'Obsolete' : days >= 60 ? 'Deprecated' : undefined);
          expect(isDeprecationUpToDate(policy, now)).toBe(
            found?.state === (versions[0]!.deprecation as { state?: string } | undefined)?.state,
          );
          versions[0]!.deprecation = found;
          expect(isDeprecationUpToDate(policy, now)).toBe(true);
        }
      }),
    );
  });
});

describe('a channel', () => {
  it('is deprecated by hand only', () => {
    const rules = { ...aging, deprecated: [{ channel: 'stable', reason, obsolete: true, replacement: 'next' }] };
    expect(deprecationOfChannel(rules, 'stable')).toEqual({ state: 'Obsolete', message: reason, replacement: 'next' });
    expect(deprecationOfChannel(rules, 'candidate')).toBe(undefined);
  });
});

describe('a mark', () => {
  const marked = (text: string | undefined) => ({
    apiVersion: 'v1',
    kind: 'PersistentVolumeClaim',
    metadata: { name: 'fedora-1', annotations: text === undefined ? {} : { [annotations.deprecation]: text } },
  });
  it('is read as it was written', () => {
    const status = { state: 'Deprecated', message: reason, by: 'jane' } as const;
    expect(deprecationIn(marked(toMark('fedora', 'fedora-1', status)))).toEqual({
      policy: 'fedora',
      version: 'fedora-1',
      ...status,
    });
  });
  it.each([undefined, '', '{', 'null', '[]', '{"state":"Deprecated"}', '{"state":"Gone","policy":"x","message":"y"}'])(
    'that is %s says nothing',
    (text) => expect(deprecationIn(marked(text))).toBe(undefined),
  );
});
