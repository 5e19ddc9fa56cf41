// A seeded random number generator: the same seed gives the same run.

/** Different in each run, unless `SEED` is set. Tests include it in their titles, so that failures can be reproduced. */
export const seed = Number(process.env['SEED'] ?? NaN) || Math.floor(Math.random() * 2 ** 31);

/**
 * Seeds of storms, starting with `SEED` (CI has one per commit) or the first: as many as `FAULT_SEEDS`, else `count`. Failures report their
 * seed.
 */
export const stormSeeds = (count: number): readonly number[] => {
  const first = Number(process.env['SEED'] ?? 1);
  return Array.from({ length: Number(process.env['FAULT_SEEDS'] ?? count) }, (_, index) => first + index);
};

/** `BULLION_FUZZ=100 npx vitest run <path>`: properties run a hundred times as long. */
export const effort = Number(process.env['BULLION_FUZZ'] ?? 1);
export const fuzzTimeout = 60_000 * effort;

/**
 * Of rows that take long, a different part in each run, in their order: all of them in a few commits, and at once with `BULLION_FUZZ=<1 / part>`.
 * For rows of which each is one more example of what the others show.
 */
export const drawn = <T>(rows: readonly T[], part: number): readonly T[] => {
  const places = shuffle([...rows.keys()], createRandom(seed));
  const picked = new Set(places.slice(0, Math.ceil(rows.length * part * effort)));
  return rows.filter((_, index) => picked.has(index));
};

export interface Random {
  /** 0 ≤ x < 1. */
  next(): number;
  /** An integer, 0 ≤ x < n. */
  below(n: number): number;
  chance(probability: number): boolean;
  pick<T>(items: readonly T[]): T;
}

/** mulberry32: small, fast, good enough to shuffle events with. */
export const createRandom = (seed: number): Random => {
  let state = seed >>> 0;
  const next = (): number => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
  const below = (n: number): number => Math.floor(next() * n);
  return {
    next,
    below,
    chance: (probability) => next() < probability,
    pick: (items) => items[below(items.length)]!,
  };
};

/** The items in random order. */
export const shuffle = <T>(items: readonly T[], random: Random): T[] =>
  items
    .map((item) => ({ item, at: random.next() }))
    .toSorted((a, b) => a.at - b.at)
    .map(({ item }) => item);
