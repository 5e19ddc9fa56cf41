import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { createHashes } from '#shared/transfer/resume/hashes.ts';
import { isWorthSaving, savePolicy } from '#shared/transfer/resume/policy.ts';

const mib = 1024 * 1024;

describe('digests', () => {
  const algorithms = ['md5', 'sha1', 'sha256', 'sha512'];
  it('are the same in one pass or resumed at any position', async () => {
    await fc.assert(
      fc.asyncProperty(fc.uint8Array({ maxLength: 5000 }), fc.nat(5000), async (bytes, cut) => {
        const first = await createHashes(algorithms, 'undecided');
        first.update(bytes.subarray(0, cut));
        first.settle('savable');
        const second = await createHashes(algorithms, { states: first.save() });
        const whole = await createHashes(algorithms, 'never');
        for (const hashes of [first, second]) hashes.update(bytes.subarray(cut));
        whole.update(bytes);
        const expected = whole.digests();
        expect(second.digests()).toEqual(expected);
        expect(first.digests()).toEqual(expected);
      }),
      { numRuns: 50 },
    );
  });

  it('of the fast implementation have no state to save', async () => {
    const hashes = await createHashes(['sha256'], 'undecided');
    hashes.settle('fast');
    expect(hashes.save()).toEqual({});
  });
});

describe('isWorthSaving', () => {
  const course = { bytes: 32 * mib, ms: 1000, leftBytes: 100 * 32 * mib, hasDigests: true };
  it.each([
    ['what takes long over a slow link', course, true],
    ['a short transfer', { ...course, leftBytes: 32 * mib }, false],
    ['a transfer faster than its digests could be saved', { ...course, ms: 100, leftBytes: 10 ** 12 }, false],
    ['the same, without digests to save', { ...course, ms: 100, leftBytes: 10 ** 12, hasDigests: false }, true],
  ])('%s', (_, given, expected) => {
    expect(isWorthSaving(given, savePolicy)).toBe(expected);
  });
});
