// Validates a value against a schema in the order and with the messages of kube-openapi. Called by structural.ts.

import { get, isList, isObject, jsonEqual, type Json, type JsonObject } from './json.ts';
import { propertyOf, valuesOf, type JsonSchema } from './json-schema.ts';
import { correlateIndex, correlateKey, isUnchanged, type Correlated } from './correlate.ts';
import {
  composite,
  fail,
  matched,
  mergeResults,
  missing,
  passed,
  tooManyOf,
  toCause,
  wrongValue,
  type Failure,
  type Result,
} from './failure.ts';
import { checkEnum, checkFormat, checkNull, checkNumber, checkString, checkType, typesOf } from './validate-scalar.ts';
import { enforcedFormat } from './formats.ts';
import type { Cause } from './cause.ts';

/** One value with its schema, and with its previous value if that is known. */
interface Node {
  readonly schema: JsonSchema;
  readonly value: Json;
  readonly path: string;
  readonly pair: Correlated | undefined;
}

const bestOf = (results: readonly Result[]): Result | undefined =>
  results.reduce<Result | undefined>(
    (best, next) => (best === undefined || next.matches > best.matches ? next : best),
    undefined,
  );

const isValid = (result: Result): boolean => result.failures.length === 0;

const checkAnyOf = (node: Node, schemas: readonly JsonSchema[]): Result => {
  if (schemas.length === 0) return passed;
  const results = schemas.map((schema) => checkNode({ ...node, schema }));
  const success = results.find(isValid);
  if (success !== undefined) return success;
  return mergeResults([fail(composite(`"${node.path}" must validate at least one schema (anyOf)`)), bestOf(results)]);
};

const checkOneOf = (node: Node, schemas: readonly JsonSchema[]): Result => {
  if (schemas.length === 0) return passed;
  const results = schemas.map((schema) => checkNode({ ...node, schema }));
  const valid = results.filter(isValid);
  if (valid.length === 1) return valid[0] ?? passed;
  const found = valid.length === 0 ? 'Found none valid' : `Found ${valid.length} valid alternatives`;
  return mergeResults([
    fail(composite(`"${node.path}" must validate one and only one schema (oneOf). ${found}`)),
    valid.length === 0 ? bestOf(results) : undefined,
  ]);
};

const checkAllOf = (node: Node, schemas: readonly JsonSchema[]): Result => {
  const results = schemas.map((schema) => checkNode({ ...node, schema }));
  if (results.every(isValid)) return mergeResults(results);
  const none = results.some(isValid) ? '' : '. None validated';
  return mergeResults([...results, fail(composite(`"${node.path}" must validate all the schemas (allOf)${none}`))]);
};

const checkNot = (node: Node, schema: JsonSchema | undefined): Result =>
  schema !== undefined && isValid(checkNode({ ...node, schema }))
    ? fail(composite(`"${node.path}" must not validate the schema (not)`))
    : passed;

const checkCombinations = (node: Node): Result => {
  const { anyOf = [], oneOf = [], allOf = [], not } = node.schema;
  return mergeResults([
    checkAnyOf(node, anyOf),
    checkOneOf(node, oneOf),
    checkAllOf(node, allOf),
    checkNot(node, not),
    matched,
  ]);
};

const isUnique = (items: readonly Json[]): boolean =>
  items.every((item, index) => !items.slice(0, index).some((other) => jsonEqual(other, item)));

const checkItems = (node: Node, items: readonly Json[]): Result => {
  const { items: schema } = node.schema;
  if (schema === undefined) return passed;
  return mergeResults(
    items.map((value, index) =>
      checkPaired({ schema, value, path: `${node.path}[${index}]`, pair: correlateIndex(node.pair, index) }),
    ),
  );
};

const checkList = (node: Node, items: readonly Json[]): Result => {
  const { minItems, maxItems, uniqueItems } = node.schema;
  const { path } = node;
  const found: Failure[] = [];
  if (minItems !== undefined && items.length < minItems)
    found.push(wrongValue(path, items.length, `should have at least ${minItems} items`));
  if (maxItems !== undefined && items.length > maxItems) found.push(tooManyOf(path, items.length, maxItems, 'items'));
  if (uniqueItems === true && !isUnique(items)) found.push(wrongValue(path, '', "shouldn't contain duplicates"));
  return mergeResults([checkItems(node, items), fail(...found), matched]);
};

const checkSize = (node: Node, size: number): Failure[] => {
  const { minProperties, maxProperties } = node.schema;
  const found: Failure[] = [];
  if (minProperties !== undefined && size < minProperties)
    found.push(wrongValue(node.path, size, `should have at least ${minProperties} properties`));
  if (maxProperties !== undefined && size > maxProperties)
    found.push(tooManyOf(node.path, size, maxProperties, 'properties'));
  return found;
};

const checkField = (node: Node, key: string, value: Json, schema: JsonSchema): Result => {
  const isTypeMeta = node.path === '' && (key === 'kind' || key === 'apiVersion');
  const pair = isTypeMeta ? undefined : correlateKey(node.pair, key);
  return checkPaired({ schema, value, path: node.path === '' ? key : `${node.path}.${key}`, pair });
};

const checkValues = (node: Node, object: JsonObject): Result => {
  if (node.schema.additionalProperties === false)
    return fail(
      ...Object.keys(object)
        .filter((key) => propertyOf(node.schema, key) === undefined)
        .map((key) => ({
          ...wrongValue(node.path, key, ''),
          text: `${node.path}.${key} in body is a forbidden property`,
        })),
    );
  const schema = valuesOf(node.schema);
  if (schema === undefined) return passed;
  return mergeResults(
    Object.entries(object)
      .filter(([key]) => propertyOf(node.schema, key) === undefined)
      .map(([key, value]) => checkField(node, key, value, schema)),
  );
};

const checkProperties = (node: Node, object: JsonObject): Result =>
  mergeResults(
    Object.entries(node.schema.properties ?? {}).map(([key, schema]) => {
      const value = get(object, key);
      return value === undefined ? undefined : checkField(node, key, value, schema);
    }),
  );

const checkObject = (node: Node, object: JsonObject): Result => {
  const absent = (node.schema.required ?? []).filter((key) => !Object.hasOwn(object, key));
  return mergeResults([
    fail(...checkSize(node, Object.keys(object).length)),
    checkValues(node, object),
    checkProperties(node, object),
    fail(...absent.map((key) => missing(`${node.path}.${key}`))),
  ]);
};

const checkByKind = ({ schema, value, path, ...rest }: Node): (Result | undefined)[] => {
  const node = { schema, value, path, ...rest };
  if (typeof value === 'string') return [checkString(schema, value, path), checkFormat(schema, value, path)];
  if (typeof value === 'number') return [checkNumber(schema, value, path)];
  return isList(value) ? [checkList(node, value)] : [];
};

const hasType = (schema: JsonSchema): boolean =>
  typesOf(schema).length > 0 || enforcedFormat(typesOf(schema), schema.format) !== '';

/** Every check that applies increments the match count, by which Kubernetes determines the closest branch of an anyOf. */
const checkNode = (node: Node): Result => {
  const { schema, value, path } = node;
  if (value === null) return mergeResults([checkNull(schema, path), checkEnum(schema, value, path)]);
  const checks = [
    hasType(schema) ? checkType(schema, value, path) : undefined,
    checkCombinations(node),
    ...checkByKind(node),
    checkEnum(schema, value, path),
    isObject(value) ? checkObject(node, value) : undefined,
  ].filter((result) => result !== undefined);
  return mergeResults([...checks, { failures: [], matches: checks.length + 1 }]);
};

/** Violations that existed before and did not change are accepted. */
const checkPaired = (node: Node): Result => {
  const result = checkNode(node);
  if (isValid(result) || node.pair === undefined || !isUnchanged(node.pair)) return result;
  return { failures: [], matches: result.matches };
};

export interface ValueOptions {
  /** The value before an update; unchanged violations are then accepted. */
  readonly old?: Json | undefined;
  /** Path of the value in its object; empty for the object itself. */
  readonly path?: string;
}

/** Violations of a schema in a value. Field paths start with `path`; the messages contain the path within the value. */
export const validateValue = (schema: JsonSchema, value: Json, options: ValueOptions = {}): Cause[] => {
  const pair = options.old === undefined ? undefined : { value, old: options.old, schema };
  return checkPaired({ schema, value, path: '', pair }).failures.map((failure) => toCause(failure, options.path ?? ''));
};
