// JSON values in the API server, and how Go prints them: every message that a client compares depends on it.

export type Json = null | boolean | number | string | readonly Json[] | JsonObject;
export interface JsonObject {
  readonly [key: string]: Json;
}

export const isObject = (value: unknown): value is JsonObject =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

export const isList = (value: unknown): value is readonly Json[] => Array.isArray(value);

/** Own property of an object; undefined when absent, never an inherited one such as `constructor`. */
export const get = (object: JsonObject, key: string): Json | undefined =>
  Object.hasOwn(object, key) ? object[key] : undefined;

/** Builds an object from entries without setting a prototype: `__proto__` is an ordinary key. */
export const fromEntries = (entries: Iterable<readonly [string, Json]>): JsonObject => Object.fromEntries(entries);

/** The object with `key` set (in place when it exists, else last). */
export const withKey = (object: JsonObject, key: string, value: Json): JsonObject =>
  Object.hasOwn(object, key)
    ? fromEntries(Object.entries(object).map(([name, old]) => [name, name === key ? value : old] as const))
    : fromEntries([...Object.entries(object), [key, value] as const]);

export const withoutKey = (object: JsonObject, key: string): JsonObject =>
  Object.hasOwn(object, key) ? fromEntries(Object.entries(object).filter(([name]) => name !== key)) : object;

/** Deep equality; the order of keys does not matter, the order of items does. */
export const jsonEqual = (a: Json | undefined, b: Json | undefined): boolean => {
  if (a === b) return true;
  if (isList(a)) return isList(b) && a.length === b.length && a.every((item, index) => jsonEqual(item, b[index]));
  if (!isObject(a) || !isObject(b)) return false;
  const keys = Object.keys(a);
  return (
    keys.length === Object.keys(b).length && keys.every((key) => Object.hasOwn(b, key) && jsonEqual(a[key], b[key]))
  );
};

const escapes: Readonly<Record<string, string>> = {
  '\u0007': '\\a',
  '\b': '\\b',
  '\f': '\\f',
  '\n': '\\n',
  '\r': '\\r',
  '\t': '\\t',
  '\v': '\\v',
  '\\': '\\\\',
  '"': '\\"',
};

const quoteRune = (rune: string): string => {
  const escaped = escapes[rune];
  if (escaped !== undefined) return escaped;
  const code = rune.codePointAt(0) ?? 0;
  if (code < 0x20 || code === 0x7f) return `\\x${code.toString(16).padStart(2, '0')}`;
  if (code < 0x7f || /[\p{L}\p{M}\p{N}\p{P}\p{S}]/u.test(rune)) return rune;
  return code > 0xffff ? `\\U${code.toString(16).padStart(8, '0')}` : `\\u${code.toString(16).padStart(4, '0')}`;
};

/** A string as printed by Go's `%q`. */
export const goQuote = (text: string): string => `"${Array.from(text, quoteRune).join('')}"`;

/** Whether Go reads a JSON number as int64. Its notation (`1` or `1.0`) is lost in JavaScript. */
export const isGoInteger = (value: number): boolean => Number.isInteger(value) && Math.abs(value) < 2 ** 63;

/** A number as printed by Go's `%v`: exponents have two digits and are used beyond 1e21 or below 1e-4. */
export const goNumber = (value: number): string => {
  const magnitude = Math.abs(value);
  if (magnitude !== 0 && magnitude < 1e-4) return value.toExponential().replace(/e([+-])(\d)$/, 'e$10$2');
  return String(value).replace(/e([+-])(\d)$/, 'e$10$2');
};

/** JSON text with `<`, `>` and `&` escaped, as Go does. */
export const escapeHtml = (text: string): string =>
  text.replaceAll(
    /[<>&\u2028\u2029]/g,
    (character) => `\\u${(character.codePointAt(0) ?? 0).toString(16).padStart(4, '0')}`,
  );

/** JSON as printed by Go's `json.Marshal` for a map: keys sorted, `<`, `>` and `&` escaped. */
export const goJson = (value: Json): string => escapeHtml(stableJson(value));

/** JSON with sorted keys. Integer-like keys are ordered as strings too, as Go does. */
export const stableJson = (value: Json): string => {
  if (isList(value)) return `[${value.map(stableJson).join(',')}]`;
  if (!isObject(value)) return JSON.stringify(value);
  const keys = Object.keys(value).toSorted();
  return `{${keys.map((key) => `${JSON.stringify(key)}:${stableJson(value[key] ?? null)}`).join(',')}}`;
};

/** A value as printed by Go's `%v`: `map[a:1 b:[x y]]`. */
export const goShow = (value: Json): string => {
  if (value === null) return '<nil>';
  if (isList(value)) return `[${value.map(goShow).join(' ')}]`;
  if (!isObject(value)) return typeof value === 'number' ? goNumber(value) : String(value);
  const keys = Object.keys(value).toSorted();
  return `map[${keys.map((key) => `${key}:${goShow(value[key] ?? null)}`).join(' ')}]`;
};
