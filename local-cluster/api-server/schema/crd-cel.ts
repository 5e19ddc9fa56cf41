// Whether the CEL rules in the schema of a CRD are valid and compile. Called by crd-rules.ts.

import { childPath, indexPath, invalid, invalidShown, notSupported, required, type Cause } from './cause.ts';
import { compileRule, readsVariable } from './cel.ts';
import { asResource, withTypeAndMeta } from './cel-values.ts';
import { childOf, type JsonSchema, type ValidationRule } from './json-schema.ts';
import { escapeHtml, type Json } from './json.ts';

/** The context of a place in the schema. */
export interface Place {
  readonly path: string;
  readonly isRoot: boolean;
  /** Why defaults are forbidden here. */
  readonly noDefaults?: string;
  readonly inMeta?: boolean;
  /** The list or map whose items cannot be correlated with old ones. */
  readonly unpaired?: string;
  /** False under logical junctors, where rules are forbidden anyway. */
  readonly compiles: boolean;
}

const reasons = ['FieldValueDuplicate', 'FieldValueForbidden', 'FieldValueInvalid', 'FieldValueRequired'];

const checkRuleText = (rule: ValidationRule, path: string): Cause[] => {
  const [text, message] = [rule.rule.trim(), (rule.message ?? '').trim()];
  if (text === '') return [required(childPath(path, 'rule'), 'rule is not specified')];
  const at = childPath(path, 'message');
  if ((rule.message ?? '') !== '' && message === '')
    return [invalid(at, rule.message ?? '', 'must be non-empty if specified')];
  if (message.includes('\n')) return [invalid(at, rule.message ?? '', 'must not contain line breaks')];
  if (text.includes('\n') && message === '')
    return [required(at, 'message must be specified if rule contains line breaks')];
  return [];
};

/** Whether `.a['b']` refers to a field of the schema. */
const isFieldPath = (fieldPath: string, schema: JsonSchema): boolean => {
  const steps = Array.from(fieldPath.matchAll(/\.([^.[]+)|\['((?:\\.|[^'\\])*)'\]/g));
  const isWhole = steps.map(([text]) => text).join('') === fieldPath;
  const target = steps.reduce<JsonSchema | undefined>(
    (current, [, name, key]) => childOf(current, name ?? (key ?? '').replaceAll(/\\(.)/g, '$1')),
    schema,
  );
  return isWhole && target !== undefined;
};

const checkFieldPath = (fieldPath: string, schema: JsonSchema, at: string): Cause[] => {
  if (fieldPath === '') return [];
  const faults = [
    ...(fieldPath.trim() === '' ? ['must be non-empty if specified'] : []),
    ...(fieldPath.includes('\n') ? ['must not contain line breaks'] : []),
    ...(isFieldPath(fieldPath, schema) ? [] : ['must be a valid path']),
  ];
  return faults.map((detail) => invalid(at, fieldPath, detail));
};

/** The strings of one rule. */
export const checkRule = (rule: ValidationRule, schema: JsonSchema, path: string): Cause[] => {
  const found = checkRuleText(rule, path);
  if (rule.messageExpression !== undefined && rule.messageExpression !== '' && rule.messageExpression.trim() === '')
    found.push(required(childPath(path, 'messageExpression'), 'messageExpression must be non-empty if specified'));
  if (rule.reason !== undefined && !reasons.includes(rule.reason))
    found.push(notSupported(childPath(path, 'reason'), rule.reason, reasons));
  return [...found, ...checkFieldPath(rule.fieldPath ?? '', schema, childPath(path, 'fieldPath'))];
};

/** The rule as Go prints its struct. */
const showRule = (rule: ValidationRule): string => escapeHtml(ruleText(rule));

const ruleText = (rule: ValidationRule): string => {
  const text = (value: Json | undefined, absent: Json): string => JSON.stringify(value ?? absent);
  return `{"Rule":${text(rule.rule, '')},"Message":${text(rule.message, '')},"MessageExpression":${text(rule.messageExpression, '')},"Reason":${text(rule.reason, null)},"FieldPath":${text(rule.fieldPath, '')},"OptionalOldSelf":${text(rule.optionalOldSelf, null)}}`;
};

const compileMessage = (rule: ValidationRule, schema: JsonSchema, path: string): Cause[] => {
  if (rule.messageExpression === undefined || rule.messageExpression === '') return [];
  const at = childPath(path, 'messageExpression');
  const compiled = compileRule(rule.messageExpression, schema, rule.optionalOldSelf === true);
  if (compiled.kind === 'invalid') return [invalidShown(at, showRule(rule), `messageExpression ${compiled.message}`)];
  return compiled.type === 'string' || compiled.type === 'dyn'
    ? []
    : [invalidShown(at, showRule(rule), 'messageExpression must evaluate to a string')];
};

const compileCause = (rule: ValidationRule, schema: JsonSchema, path: string): Cause[] => {
  const compiled = compileRule(rule.rule, schema, rule.optionalOldSelf === true);
  const at = childPath(path, 'rule');
  if (compiled.kind === 'invalid') return [invalidShown(at, showRule(rule), compiled.message)];
  return compiled.type === 'bool' || compiled.type === 'dyn'
    ? compileMessage(rule, schema, path)
    : [invalidShown(at, showRule(rule), 'cel expression must evaluate to a bool')];
};

const checkTransition = (rule: ValidationRule, place: Place, path: string): Cause[] => {
  if (readsVariable(rule.rule, 'oldSelf'))
    return place.unpaired === undefined
      ? []
      : [
          invalid(
            childPath(path, 'rule'),
            rule.rule,
            `oldSelf cannot be used on the uncorrelatable portion of the schema within ${place.unpaired}`,
          ),
        ];
  return rule.optionalOldSelf === undefined
    ? []
    : [
        invalid(
          childPath(path, 'optionalOldSelf'),
          rule.optionalOldSelf,
          'may not be set if oldSelf is not used in rule',
        ),
      ];
};

/** Compiles the rules of a place. */
export const checkCel = (schema: JsonSchema, place: Place): Cause[] =>
  (schema['x-kubernetes-validations'] ?? []).flatMap((rule, index) => {
    const path = indexPath(childPath(place.path, 'x-kubernetes-validations'), index);
    const typed = place.isRoot ? withTypeAndMeta(schema) : asResource(schema);
    return [...compileCause(rule, typed, path), ...checkTransition(rule, place, path)];
  });
