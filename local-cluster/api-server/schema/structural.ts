// The entry of this folder for objects with a structural schema: prune, default, validate. Called by the API server.
import { type Cause, childPath, duplicate, indexPath, invalid, keyPath, required } from './cause.ts';
import { checkRules } from './cel-rules.ts';
import { childOf, hasRules, isEmbedded, type JsonSchema, propertyOf, valuesOf } from './json-schema.ts';
import { fromEntries, get, isList, isObject, type Json, type JsonObject, stableJson } from './json.ts';
import { validateValue } from './validate.ts';

// Sets the defaults of a structural schema and removes nulls that are not allowed.

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

export type { Cause } from './cause.ts';
export type { JsonSchema } from './json-schema.ts';
export { pruneObject } from './prune.ts';

interface ValidateOptions {
  /** The object before an update: unchanged violations are accepted, transition rules are evaluated. */
  readonly oldObject?: JsonObject;
  /** For an update of the status subresource only the status is validated. */
  readonly subresource?: 'status';
}

const checkSchema = (schema: JsonSchema, object: JsonObject, options: ValidateOptions): Cause[] => {
  if (options.subresource === undefined) return validateValue(schema, object, { old: options.oldObject });
  const statusSchema = childOf(schema, 'status');
  const status = get(object, 'status');
  if (statusSchema === undefined || status === undefined) return [];
  const old = options.oldObject === undefined ? undefined : get(options.oldObject, 'status');
  return validateValue(statusSchema, status, { old, path: 'status' });
};

/** Repeated keys block an update only if the old object had none. */
const checkLists = (schema: JsonSchema, object: JsonObject, oldObject: JsonObject | undefined): Cause[] => {
  const found = checkListTypes(schema, object);
  if (found.length === 0 || oldObject === undefined) return found;
  return checkListTypes(schema, oldObject).length > 0 ? [] : found;
};

const blocking = new Set([
  'FieldValueNotSupported',
  'FieldValueRequired',
  'FieldValueTooLong',
  'FieldValueTooMany',
  'FieldValueTypeInvalid',
]);

const rulesSkipped = invalid(
  '',
  null,
  'some validation rules were not checked because the object was invalid; correct the existing errors to complete validation',
);

/**
 * All violations in a custom resource except in its own metadata, in the order of Kubernetes: schema, embedded
 * resources, repeated keys, then CEL rules, which are evaluated only for objects that match the schema.
 */
export const validateObject = (schema: JsonSchema, object: JsonObject, options: ValidateOptions = {}): Cause[] => {
  const causes = [
    ...checkSchema(schema, object, options),
    ...(options.subresource === undefined ? checkEmbedded(schema, object) : []),
    ...checkLists(schema, object, options.oldObject),
  ];
  if (!hasRules(schema)) return causes;
  if (causes.some((cause) => blocking.has(cause.reason))) return [...causes, rulesSkipped];
  return [...causes, ...checkRules(schema, object, options.oldObject)];
};

/** Resources inside resources (x-kubernetes-embedded-resource) must have a type. */
const label = /^[a-z]([-a-z0-9]*[a-z0-9])?$/;

const labelRule =
  "may have mixed case, but should otherwise match: a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic character, and end with an alphanumeric character (e.g. 'my-name',  or 'abc-123', regex used for validation is '[a-z]([-a-z0-9]*[a-z0-9])?')";

const checkApiVersion = (value: Json, path: string): Cause[] => {
  if (typeof value !== 'string') return [invalid(path, value, 'must be a string')];
  if (value === '') return [invalid(path, value, 'must not be empty')];
  return value.split('/').length > 2 ? [invalid(path, value, `unexpected GroupVersion string: ${value}`)] : [];
};

const checkKind = (value: Json, path: string): Cause[] => {
  if (typeof value !== 'string') return [invalid(path, value, 'must be a string')];
  if (value === '') return [invalid(path, value, 'must not be empty')];
  const name = value.toLowerCase();
  return name.length <= 63 && label.test(name) ? [] : [invalid(path, value, labelRule)];
};

const checkResource = (resource: JsonObject, path: string): Cause[] => {
  const [apiVersion, kind] = [get(resource, 'apiVersion'), get(resource, 'kind')];
  const [versionPath, kindPath] = [childPath(path, 'apiVersion'), childPath(path, 'kind')];
  return [
    ...(apiVersion === undefined ? [required(versionPath)] : checkApiVersion(apiVersion, versionPath)),
    ...(kind === undefined ? [required(kindPath)] : checkKind(kind, kindPath)),
  ];
};

const checkField = (schema: JsonSchema, [key, value]: readonly [string, Json], path: string): Cause[] => {
  const property = propertyOf(schema, key);
  if (property !== undefined) return checkEmbedded(property, value, childPath(path, key));
  const values = valuesOf(schema);
  return values === undefined ? [] : checkEmbedded(values, value, keyPath(path, key));
};

/** The errors in the types of all embedded resources of a value. */
const checkEmbedded = (schema: JsonSchema, value: Json, path = ''): Cause[] => {
  const { items } = schema;
  if (isList(value))
    return items === undefined
      ? []
      : value.flatMap((item, index) => checkEmbedded(items, item, indexPath(path, index)));
  if (!isObject(value)) return [];
  return [
    ...(isEmbedded(schema) ? checkResource(value, path) : []),
    ...Object.entries(value).flatMap((entry) => checkField(schema, entry, path)),
  ];
};

// Lists of type set or map may not contain the same key twice.

/** Indices of the second occurrence of each repeated value; a third is not reported again. */
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

const checkFieldLists = (schema: JsonSchema, [key, value]: readonly [string, Json], path: string): Cause[] => {
  const values = valuesOf(schema);
  const property = propertyOf(schema, key);
  return [
    ...(values === undefined ? [] : checkListTypes(values, value, keyPath(path, key))),
    ...(property === undefined ? [] : checkListTypes(property, value, childPath(path, key))),
  ];
};

/** A `Duplicate value` for each repeated item of a set and each repeated key of a map, anywhere in the value. */
const checkListTypes = (schema: JsonSchema, value: Json, path = ''): Cause[] => {
  if (isList(value)) return checkList(schema, value, path);
  if (!isObject(value)) return [];
  return Object.entries(value).flatMap((entry) => checkFieldLists(schema, entry, path));
};
