// The entry of this folder for objects with a structural schema: prune, default, validate. Called by the API server.
import { invalid, type Cause, childPath, indexPath, keyPath, required, duplicate } from './cause.ts';
import { checkRules } from './cel-rules.ts';
import { get, type JsonObject, isList, isObject, type Json, stableJson, fromEntries } from './json.ts';
import { childOf, hasRules, type JsonSchema, isEmbedded, propertyOf, valuesOf } from './json-schema.ts';
import { validateValue } from './validate.ts';

export type { Cause } from './cause.ts';
export type { JsonSchema } from './json-schema.ts';
export { pruneObject } from './prune.ts';
export { applyDefaults } from './defaults.ts';

export interface ValidateOptions {
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
