// JSON as read by cases: by path, without casts.

export type JsonValue = string | number | boolean | null | undefined | readonly JsonValue[] | JsonObject;
export interface JsonObject {
  readonly [key: string]: JsonValue;
}

export const isObject = (value: JsonValue): value is JsonObject =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

/** The value at a path such as `metadata.labels` or `items.0.spec`; keys with dots are passed as an array. `undefined` when it does not exist. */
export const at = (value: JsonValue, path: string | readonly string[]): JsonValue => {
  const steps = typeof path === 'string' ? path.split('.') : path;
  return steps.reduce<JsonValue>((current, step) => {
    if (Array.isArray(current)) return (current as readonly JsonValue[])[Number(step)];
    return isObject(current) ? current[step] : undefined;
  }, value);
};

/** The string at a path; empty when there is none. */
export const textAt = (value: JsonValue, path: string | readonly string[]): string => {
  const found = at(value, path);
  return typeof found === 'string' ? found : '';
};

/** The items at a path; empty when there are none. */
export const itemsAt = (value: JsonValue, path: string | readonly string[] = 'items'): readonly JsonValue[] => {
  const found = at(value, path);
  return Array.isArray(found) ? (found as readonly JsonValue[]) : [];
};

/** The object without some of its keys. */
export const without = (value: JsonValue, ...keys: readonly string[]): JsonValue => {
  if (!isObject(value)) return value;
  return Object.fromEntries(Object.entries(value).filter(([key]) => !keys.includes(key)));
};

/** An object as a request body: a response may be changed and sent back. */
export const changed = (value: JsonValue, change: (copy: Record<string, unknown>) => void): Record<string, unknown> => {
  const copy = structuredClone(value) as Record<string, unknown>;
  change(copy);
  return copy;
};
