import { describe, expect, it } from 'vitest';
import { parseLimits } from '#shared/populate/queue/limits.ts';

describe('limits on transfers', () => {
  it('are read', () => {
    const { limits, faults } = parseLimits({ running: '20', runningPerNamespace: ' 4 ', weights: 'a=3, b=2\nc=1' });
    expect(faults).toEqual([]);
    expect(limits).toEqual({
      running: 20,
      runningPerNamespace: 4,
      runningPerHost: undefined,
      weights: new Map([
        ['a', 3],
        ['b', 2],
        ['c', 1],
      ]),
    });
  });

  it.each([
    ['running', '0', /running is "0": write a whole number from 1 on/],
    ['running', '-1', /running/],
    ['runningPerNamespace', 'many', /runningPerNamespace is "many"/],
    ['runningPerHost', '1.5', /runningPerHost/],
    ['weights', 'a=0', /weights has "a=0"/],
    ['weights', 'a', /weights has "a"/],
    ['weights', '=2', /weights has "=2"/],
    ['perNode', '2', /perNode is not known: write running, runningPerNamespace, runningPerHost, weights/],
  ])('that cannot be read are no limits, and are reported: %s=%s', (key, value, message) => {
    const { limits, faults } = parseLimits({ [key]: value });
    expect(faults).toEqual([expect.stringMatching(message)]);
    expect(limits).toEqual({
      running: undefined,
      runningPerNamespace: undefined,
      runningPerHost: undefined,
      weights: new Map(),
    });
  });
});
