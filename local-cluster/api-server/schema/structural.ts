// The entry of this folder for objects with a structural schema: prune, default, validate. Called by the API server.

import { invalid, type Cause } from './cause.ts';
import { checkRules } from './cel-rules.ts';
import { checkEmbedded } from './embedded.ts';
import { get, type JsonObject } from './json.ts';
import { childOf, hasRules, type JsonSchema } from './json-schema.ts';
import { checkListTypes } from './list-type.ts';
import { validateValue } from './validate.ts';

export type { Cause } from './cause.ts';
export type { JsonSchema } from './json-schema.ts';
export { pruneObject } from './prune.ts';
export { applyDefaults } from './defaults.ts';

export interface ValidateOptions {
  /** The object before an update: unchanged faults are forgiven, transition rules run. */
  readonly oldObject?: JsonObject;
  /** Of an update to the status subresource only the status is validated. */
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

/** Repeated keys block an update only if the object had none before. */
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
 * Everything wrong with a custom resource beyond its own metadata, in the order Kubernetes tells it: schema, embedded
 * resources, repeated keys, then CEL rules, which run only on objects whose shape is right.
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
