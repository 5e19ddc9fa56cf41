import { expect, it } from 'vitest';
import { createListingClock } from '#shared/object-import/sweep.ts';

it('lists at the first tick, and then only at its interval', () => {
  let now = 5;
  const isDue = createListingClock(900_000, () => now);
  const asked = [0, 60_000, 899_999, 900_000, 960_000, 1_800_000].map((at) => {
    now = at;
    return isDue();
  });
  expect(asked).toEqual([true, false, false, true, false, true]);
});
