// Sets the defaults of a structural schema and removes nulls that are not allowed.

import { isObject, isList, fromEntries, type Json, type JsonObject } from './json.ts';
import { childOf, propertyOf, valuesOf, type JsonSchema } from './json-schema.ts';

const isForbiddenNull = (value: Json, schema: JsonSchema | undefined): boolean =>
  value === null && schema !== undefined && schema.nullable !== true;

const hasDefault = (schema: JsonSchema | undefined): boolean =>
  schema?.default !== undefined && schema.default !== null;

const mayNotStay = (value: Json, schema: JsonSchema | undefined): boolean =>
  isForbiddenNull(value, schema) && !hasDefault(schema);

/** Most objects need no change: unchanged values are returned as they are. */
const mapItems = (list: readonly Json[], change: (item: Json) => Json): readonly Json[] => {
  const changed = list.map(change);
  return changed.every((item, index) => item === list[index]) ? list : changed;
};

const mapFields = (object: JsonObject, change: (key: string, value: Json) => Json | undefined): JsonObject => {
  const fields = Object.entries(object);
  const changed = fields.map(([key, value]) => [key, change(key, value)] as const);
  if (changed.every(([, value], index) => value === fields[index]?.[1])) return object;
  return fromEntries(changed.filter((field): field is readonly [string, Json] => field[1] !== undefined));
};

/** Removes nulls that are neither nullable nor have a default. Nulls in lists are kept: the validator reports them. */
const dropNulls = (value: Json, schema: JsonSchema | undefined): Json => {
  if (schema === undefined) return value;
  if (isList(value)) return mapItems(value, (item) => dropNulls(item, schema.items));
  if (!isObject(value)) return value;
  return mapFields(value, (key, child) => {
    const childSchema = childOf(schema, key);
    return mayNotStay(child, childSchema) ? undefined : dropNulls(child, childSchema);
  });
};

/** A copy: the caller may change the object. */
const defaultOf = (schema: JsonSchema | undefined): Json => structuredClone(schema?.default ?? null);

/** A null under a non-nullable schema without default becomes that schema's (absent) default: null again. */
const replaceNull = (value: Json, schema: JsonSchema | undefined): Json =>
  isForbiddenNull(value, schema) ? defaultOf(schema) : value;

const missingDefaults = (object: JsonObject, schema: JsonSchema): (readonly [string, Json])[] =>
  Object.entries(schema.properties ?? {})
    .filter(([name, property]) => hasDefault(property) && !Object.hasOwn(object, name))
    .map(([name, property]) => [name, defaultOf(property)] as const);

const fillField = (schema: JsonSchema, key: string, value: Json): Json => {
  const property = propertyOf(schema, key);
  if (property !== undefined) return fill(hasDefault(property) ? replaceNull(value, property) : value, property);
  const values = valuesOf(schema);
  return fill(replaceNull(value, values), values);
};

const fill = (value: Json, schema: JsonSchema | undefined): Json => {
  if (schema === undefined) return value;
  if (isList(value)) return mapItems(value, (item) => fill(replaceNull(item, schema.items), schema.items));
  if (!isObject(value)) return value;
  const missing = missingDefaults(value, schema);
  const whole = missing.length === 0 ? value : fromEntries([...Object.entries(value), ...missing]);
  return mapFields(whole, (key, child) => fillField(schema, key, child));
};

/** The object with defaults set; the same object if none was missing. Nulls that are not allowed are dropped first, so that defaults replace them. */
export const applyDefaults = (schema: JsonSchema, object: JsonObject): JsonObject => {
  const filled = fill(dropNulls(object, schema), schema);
  return isObject(filled) ? filled : object;
};
