// Tables with keys from outside: an object literal also answers to `constructor`, `__proto__` and the like.

/** The row with this key; `undefined` for a key that the table does not have itself. */
export const lookup = <T>(table: Readonly<Record<string, T>>, key: string): T | undefined =>
  Object.hasOwn(table, key) ? table[key] : undefined;
