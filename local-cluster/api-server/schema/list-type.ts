// Lists that are sets or maps may not hold the same key twice.

import { duplicate, childPath, indexPath, invalid, keyPath, type Cause } from './cause.ts';
import { get, isList, isObject, stableJson, fromEntries, type Json, type JsonObject } from './json.ts';
import { propertyOf, valuesOf, type JsonSchema } from './json-schema.ts';

/** Indices of the second occurrence of each repeated value; a third is not told again. */
const repeatedIndices = (keys: readonly string[]): number[] => {
  const seen = new Map<string, number>();
  return keys.flatMap((key, index) => {
    const times = (seen.get(key) ?? 0) + 1;
    seen.set(key, times);
    return times === 2 ? [index] : [];
  });
};

const keyOfItem = (item: Json, names: readonly string[]): JsonObject =>
  fromEntries(
    names.flatMap((name) => {
      const value = isObject(item) ? get(item, name) : undefined;
      return value === undefined ? [] : [[name, value] as const];
    }),
  );

const checkMap = (schema: JsonSchema, items: readonly Json[], path: string): Cause[] => {
  const odd = items.findIndex((item) => item !== null && !isObject(item));
  if (odd !== -1)
    return [invalid(indexPath(path, odd), items[odd] ?? null, 'must be an object for an array of list-type map')];
  const keys = items.map((item) => keyOfItem(item, schema['x-kubernetes-list-map-keys'] ?? []));
  return repeatedIndices(keys.map(stableJson)).map((index) => duplicate(indexPath(path, index), keys[index] ?? {}));
};

const checkSet = (items: readonly Json[], path: string): Cause[] =>
  repeatedIndices(items.map(stableJson)).map((index) => duplicate(indexPath(path, index), items[index] ?? null));

const checkList = (schema: JsonSchema, items: readonly Json[], path: string): Cause[] => {
  const type = schema['x-kubernetes-list-type'];
  const own = type === 'set' ? checkSet(items, path) : type === 'map' ? checkMap(schema, items, path) : [];
  const { items: itemSchema } = schema;
  if (itemSchema === undefined) return own;
  return [...own, ...items.flatMap((item, index) => checkListTypes(itemSchema, item, indexPath(path, index)))];
};

const checkField = (schema: JsonSchema, [key, value]: readonly [string, Json], path: string): Cause[] => {
  const values = valuesOf(schema);
  const property = propertyOf(schema, key);
  return [
    ...(values === undefined ? [] : checkListTypes(values, value, keyPath(path, key))),
    ...(property === undefined ? [] : checkListTypes(property, value, childPath(path, key))),
  ];
};

/** A `Duplicate value` for each repeated item of a set and each repeated key of a map, anywhere in the value. */
export const checkListTypes = (schema: JsonSchema, value: Json, path = ''): Cause[] => {
  if (isList(value)) return checkList(schema, value, path);
  if (!isObject(value)) return [];
  return Object.entries(value).flatMap((entry) => checkField(schema, entry, path));
};
