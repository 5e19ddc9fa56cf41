// Correlates a value with its previous one before an update, so that an unchanged violation does not block the update (ratcheting).

import { get, isList, isObject, jsonEqual, stableJson, type Json } from './json.ts';
import { childOf, type JsonSchema } from './json-schema.ts';

/** The previous value at the same place; undefined when old and new cannot be correlated. */
export interface Correlated {
  readonly value: Json;
  readonly old: Json;
  readonly schema: JsonSchema;
}

export const correlateKey = (pair: Correlated | undefined, name: string): Correlated | undefined => {
  if (pair === undefined || !isObject(pair.value) || !isObject(pair.old)) return undefined;
  const [value, old] = [get(pair.value, name), get(pair.old, name)];
  const schema = childOf(pair.schema, name);
  return value === undefined || old === undefined || schema === undefined ? undefined : { value, old, schema };
};

const listKey = (item: Json, names: readonly string[]): string | undefined =>
  isObject(item) ? stableJson(names.map((name) => get(item, name) ?? null)) : undefined;

/** Only lists of type map can be correlated per item. */
export const correlateIndex = (pair: Correlated | undefined, index: number): Correlated | undefined => {
  if (pair === undefined || !isList(pair.value) || !isList(pair.old)) return undefined;
  const { items: schema, 'x-kubernetes-list-map-keys': names } = pair.schema;
  if (pair.schema['x-kubernetes-list-type'] !== 'map' || schema === undefined || names === undefined) return undefined;
  const value = pair.value[index];
  const key = value === undefined ? undefined : listKey(value, names);
  const old = key === undefined ? undefined : pair.old.find((item) => listKey(item, names) === key);
  return value === undefined || old === undefined ? undefined : { value, old, schema };
};

/** Whether nothing changed here. Items of a map list may have moved; unknown fields count as changed. */
export const isUnchanged = (pair: Correlated): boolean => {
  const { value, old } = pair;
  if (isList(value) && isList(old)) {
    if (value.length !== old.length) return false;
    if (pair.schema['x-kubernetes-list-type'] !== 'map') return jsonEqual(value, old);
    return value.every((_, index) => isPairUnchanged(correlateIndex(pair, index)));
  }
  if (isObject(value) && isObject(old)) {
    const keys = Object.keys(value);
    return keys.length === Object.keys(old).length && keys.every((key) => isPairUnchanged(correlateKey(pair, key)));
  }
  return jsonEqual(value, old);
};

const isPairUnchanged = (pair: Correlated | undefined): boolean => pair !== undefined && isUnchanged(pair);
