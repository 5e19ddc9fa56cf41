// Caches a value that is read from elsewhere, for callers to whom a slightly old one is good enough.

/** `isFresh`: as it is now. A failed read is thrown, and not kept. */
export type Cached<T> = (isFresh?: boolean) => Promise<T>;

/** Reads again what is older than `lastsMs`. `now`: milliseconds since the epoch. */
export const cached = <T>(read: () => Promise<T>, lastsMs: number, now: () => number): Cached<T> => {
  let known: { readonly value: T; readonly until: number } | undefined;
  return async (isFresh = false) => {
    if (isFresh || known === undefined || now() >= known.until) known = { value: await read(), until: now() + lastsMs };
    return known.value;
  };
};
