// Fills in the defaults of a structural schema and clears nulls that may not stay.

import { isObject, isList, fromEntries, type Json, type JsonObject } from './json.ts';
import { childOf, propertyOf, valuesOf, type JsonSchema } from './json-schema.ts';

const isForbiddenNull = (value: Json, schema: JsonSchema | undefined): boolean =>
  value === null && schema !== undefined && schema.nullable !== true;

const hasDefault = (schema: JsonSchema | undefined): boolean =>
  schema?.default !== undefined && schema.default !== null;

const mayNotStay = (value: Json, schema: JsonSchema | undefined): boolean =>
  isForbiddenNull(value, schema) && !hasDefault(schema);

/** Removes nulls that are neither nullable nor have a default. Nulls in lists stay: a validator complains. */
const dropNulls = (value: Json, schema: JsonSchema | undefined): Json => {
  if (isList(value)) return value.map((item) => dropNulls(item, schema?.items));
  if (!isObject(value)) return value;
  return fromEntries(
    Object.entries(value)
      .map(([key, child]) => [key, child, childOf(schema, key)] as const)
      .filter(([, child, childSchema]) => !mayNotStay(child, childSchema))
      .map(([key, child, childSchema]) => [key, dropNulls(child, childSchema)] as const),
  );
};

/** A null under an undefaulted, non-nullable schema becomes that schema's (absent) default: null again. */
const replaceNull = (value: Json, schema: JsonSchema | undefined): Json =>
  isForbiddenNull(value, schema) ? (schema?.default ?? null) : value;

const missingDefaults = (object: JsonObject, schema: JsonSchema): (readonly [string, Json])[] =>
  Object.entries(schema.properties ?? {})
    .filter(([name, property]) => hasDefault(property) && !Object.hasOwn(object, name))
    .map(([name, property]) => [name, property.default ?? null] as const);

const fillField = (schema: JsonSchema, key: string, value: Json): Json => {
  const property = propertyOf(schema, key);
  if (property !== undefined) return fill(hasDefault(property) ? replaceNull(value, property) : value, property);
  const values = valuesOf(schema);
  return fill(replaceNull(value, values), values);
};

const fill = (value: Json, schema: JsonSchema | undefined): Json => {
  if (schema === undefined) return value;
  if (isList(value)) return value.map((item) => fill(replaceNull(item, schema.items), schema.items));
  if (!isObject(value)) return value;
  const entries = [...Object.entries(value), ...missingDefaults(value, schema)];
  return fromEntries(entries.map(([key, child]) => [key, fillField(schema, key, child)] as const));
};

/** The object with defaults filled in. Nulls that may not stay are dropped first, so that defaults replace them. */
export const applyDefaults = (schema: JsonSchema, object: JsonObject): JsonObject => {
  const filled = fill(dropNulls(object, schema), schema);
  return isObject(filled) ? filled : object;
};
