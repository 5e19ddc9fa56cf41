// Evaluates x-kubernetes-validations for an object. Called by structural.ts.

import { Optional } from '@marcbachmann/cel-js';
import {
  childPath,
  duplicate,
  duplicateBare,
  forbidden,
  indexPath,
  invalid,
  invalidBare,
  keyPath,
  required,
  type Cause,
} from './cause.ts';
import { compileRule, readsVariable, type Compiled } from './cel.ts';
import { asResource, toCelValue, withTypeAndMeta } from './cel-values.ts';
import { correlateIndex, correlateKey, isUnchanged, type Correlated } from './correlate.ts';
import { get, isList, isObject, type Json, type JsonObject } from './json.ts';
import { propertyOf, valuesOf, hasRules, type JsonSchema, type ValidationRule } from './json-schema.ts';

interface CompiledRule {
  readonly rule: ValidationRule;
  readonly program: Compiled;
  readonly message: Compiled | undefined;
  readonly usesOldSelf: boolean;
}

const compileOne = (rule: ValidationRule, schema: JsonSchema): CompiledRule => {
  const optional = rule.optionalOldSelf === true;
  return {
    rule,
    program: compileRule(rule.rule, schema, optional),
    message: rule.messageExpression === undefined ? undefined : compileRule(rule.messageExpression, schema, optional),
    usesOldSelf: readsVariable(rule.rule, 'oldSelf'),
  };
};

const compiledRules = new WeakMap<JsonSchema, readonly CompiledRule[]>();

/** Rules are compiled once for each schema object and cached for its lifetime. */
const rulesOf = (schema: JsonSchema, isRoot: boolean): readonly CompiledRule[] => {
  const known = compiledRules.get(schema);
  if (known !== undefined) return known;
  const typed = isRoot ? withTypeAndMeta(schema) : asResource(schema);
  const rules = (schema['x-kubernetes-validations'] ?? []).map((rule) => compileOne(rule, typed));
  compiledRules.set(schema, rules);
  return rules;
};

/** One value with its schema. */
interface Place {
  readonly schema: JsonSchema;
  readonly value: Json;
  /** The value before an update, if it can be correlated. */
  readonly old: Json | undefined;
  /** Previous value for ratcheting; that of the nearest parent if this place has none. */
  readonly pair: Correlated | undefined;
  readonly path: string;
  readonly isRoot: boolean;
}

const messageOf = (error: unknown): string => (error instanceof Error ? error.message : String(error));

const nameOf = (rule: ValidationRule): string => (rule.message ?? rule.rule).trim();

const evaluationFault = (place: Place, rule: ValidationRule, error: unknown): Cause => {
  const said = messageOf(error);
  const detail = said.startsWith('no such overload')
    ? `'${said}': call arguments did not match a supported operator, function or macro signature for rule: ${nameOf(rule)}`
    : `${said} evaluating rule: ${nameOf(rule)}`;
  return invalid(place.path, place.schema.type ?? '', detail);
};

const maxMessageBytes = 5 * 1024;

/** The result of a messageExpression; undefined when it fails or is not usable. */
const evaluateMessage = (compiled: CompiledRule, variables: Record<string, unknown>): string | undefined => {
  if (compiled.message?.kind !== 'compiled') return undefined;
  try {
    const text = compiled.message.run(variables);
    if (typeof text !== 'string' || text.trim() === '' || text.trim().includes('\n')) return undefined;
    return Buffer.byteLength(text) > maxMessageBytes ? undefined : text.trim();
  } catch {
    return undefined;
  }
};

const isContainer = (schema: JsonSchema): boolean => schema.type === 'object' || schema.type === 'array';

const byReason: Readonly<Record<string, (path: string, detail: string) => Cause>> = {
  FieldValueForbidden: forbidden,
  FieldValueRequired: required,
};

/** `.a['b-c']` as a path below the place of the rule. */
const fieldPathOf = (path: string, fieldPath: string | undefined): string => {
  if (fieldPath === undefined || fieldPath === '') return path;
  const normal = fieldPath
    .replaceAll(/\['((?:\\.|[^'\\])*)'\]/g, (_, key: string) => `.${key.replaceAll(/\\(.)/g, '$1')}`)
    .replace(/^\./, '');
  return childPath(path, normal);
};

const failure = (place: Place, rule: ValidationRule, detail: string): Cause => {
  const path = fieldPathOf(place.path, rule.fieldPath);
  if (rule.reason === 'FieldValueDuplicate')
    return isContainer(place.schema) ? duplicateBare(path) : duplicate(path, place.value);
  const reasoned = byReason[rule.reason ?? ''];
  if (reasoned !== undefined) return reasoned(path, detail);
  if (isContainer(place.schema)) return invalidBare(path, detail);
  return invalid(path, place.value, detail);
};

const runRule = (place: Place, compiled: CompiledRule, variables: Record<string, unknown>): Cause | undefined => {
  const { rule, program } = compiled;
  if (program.kind === 'invalid')
    return invalid(place.path, place.schema.type ?? '', `rule compile error: ${program.message}`);
  try {
    if (program.run(variables) === true) return undefined;
  } catch (error) {
    return evaluationFault(place, rule, error);
  }
  if (!compiled.usesOldSelf && place.pair !== undefined && isUnchanged(place.pair)) return undefined;
  const detail = evaluateMessage(compiled, variables) ?? (rule.message?.trim() || `failed rule: ${rule.rule.trim()}`);
  return failure(place, rule, detail);
};

const runRules = (place: Place): Cause[] => {
  const rules = rulesOf(place.schema, place.isRoot);
  if (rules.length === 0 || place.value === null) return [];
  const typed = place.isRoot ? withTypeAndMeta(place.schema) : asResource(place.schema);
  const self = toCelValue(place.value, typed);
  const oldSelf = place.old === undefined || place.old === null ? undefined : toCelValue(place.old, typed);
  return rules.flatMap((compiled) => {
    const optional = compiled.rule.optionalOldSelf === true;
    if (compiled.usesOldSelf && oldSelf === undefined && !optional) return [];
    const cause = runRule(place, compiled, { self, oldSelf: optional ? Optional.of(oldSelf) : (oldSelf ?? null) });
    return cause === undefined ? [] : [cause];
  });
};

const below = (place: Place, child: Omit<Place, 'isRoot' | 'pair'>, pair: Correlated | undefined): Place => ({
  ...child,
  isRoot: false,
  pair: pair ?? place.pair,
});

const checkItems = (place: Place, items: readonly Json[]): Cause[] => {
  const { items: schema } = place.schema;
  if (schema === undefined || !hasRules(schema)) return [];
  const pairing = place.old === undefined ? undefined : { value: place.value, old: place.old, schema: place.schema };
  return items.flatMap((value, index) => {
    const old = correlateIndex(pairing, index)?.old;
    const child = { schema, value, old, path: indexPath(place.path, index) };
    return checkPlace(below(place, child, correlateIndex(place.pair, index)));
  });
};

const checkField = (place: Place, key: string, value: Json): Cause[] => {
  const old = isObject(place.old) ? get(place.old, key) : undefined;
  const isTypeMeta = place.isRoot && (key === 'apiVersion' || key === 'kind');
  const pair = isTypeMeta ? undefined : correlateKey(place.pair, key);
  const [values, property] = [valuesOf(place.schema), propertyOf(place.schema, key)];
  const check = (schema: JsonSchema | undefined, path: string): Cause[] =>
    schema === undefined || !hasRules(schema) ? [] : checkPlace(below(place, { schema, value, old, path }, pair));
  return [...check(values, keyPath(place.path, key)), ...check(property, childPath(place.path, key))];
};

const checkPlace = (place: Place): Cause[] => {
  if (place.value === null) return [];
  const own = [
    ...runRules(place),
    ...(place.schema.allOf ?? []).flatMap((schema) =>
      hasRules(schema) ? checkPlace({ ...place, schema: { ...place.schema, ...schema, allOf: [] } }) : [],
    ),
  ];
  if (isList(place.value)) return [...own, ...checkItems(place, place.value)];
  if (!isObject(place.value)) return own;
  return [...own, ...Object.entries(place.value).flatMap(([key, value]) => checkField(place, key, value))];
};

/** The violations of a schema's rules in an object; transition rules are evaluated when there is an old object. */
export const checkRules = (schema: JsonSchema, object: JsonObject, oldObject: JsonObject | undefined): Cause[] => {
  if (!hasRules(schema)) return [];
  const pair = oldObject === undefined ? undefined : { value: object, old: oldObject, schema };
  return checkPlace({ schema, value: object, old: oldObject, pair, path: '', isRoot: true });
};
