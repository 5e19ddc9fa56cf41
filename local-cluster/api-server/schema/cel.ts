// Compiles CEL expressions: validation rules of CRDs (cel-rules.ts) and match conditions of webhooks (the API server).
import type { Environment } from '@marcbachmann/cel-js';
import { compileWording, isCelError, runtimeWording } from './cel-faults.ts';
import { createEnvironment, toUntypedCelValue, asResource, escapeName } from './cel-values.ts';
import type { Json } from './json.ts';
import { type JsonSchema, valuesOf } from './json-schema.ts';

/** Evaluates a compiled expression. Throws an Error with the message of Kubernetes. */
export type Program = (variables: Readonly<Record<string, unknown>>) => unknown;

export type Compiled =
  | { readonly kind: 'compiled'; readonly type: string; readonly run: Program }
  | { readonly kind: 'invalid'; readonly message: string };

let functionNames: ReadonlySet<string> | undefined;

const knownFunctions = (): ReadonlySet<string> => {
  functionNames ??= new Set(
    createEnvironment()
      .getDefinitions()
      .functions.map(({ name }) => name),
  );
  return functionNames;
};

const invalidExpression = (expression: string, error: unknown): Compiled => {
  if (!isCelError(error)) throw error;
  return { kind: 'invalid', message: `compilation failed: ${compileWording(expression, error, knownFunctions())}` };
};

const toProgram = (environment: Environment, expression: string): Program => {
  const parsed = environment.parse(expression);
  return (variables) => {
    try {
      return parsed(variables) as unknown;
    } catch (error) {
      if (isCelError(error)) throw new Error(runtimeWording(error), { cause: error });
      throw error;
    }
  };
};

/** Whether an expression reads a variable, other than inside a string or as a field. */
export const readsVariable = (expression: string, name: string): boolean =>
  new RegExp(String.raw`(?<![.\w])${name}\b`).test(
    expression.replaceAll(/r?"""[\s\S]*?"""|r?'''[\s\S]*?'''|"(?:\\.|[^"\\])*"|'(?:\\.|[^'\\])*'/g, '""'),
  );

/** Compiles an expression over variables of any type. */
export const compileCel = (expression: string, variables: readonly string[]): Compiled => {
  const environment = createEnvironment();
  for (const name of variables) environment.registerVariable(name, 'dyn');
  try {
    const checked = environment.check(expression);
    if (!checked.valid) return invalidExpression(expression, checked.error);
    return { kind: 'compiled', type: String(checked.type), run: toProgram(environment, expression) };
  } catch (error) {
    return invalidExpression(expression, error);
  }
};

/** Compiles an expression over `self` and `oldSelf` of the type of a schema. */
export const compileRule = (expression: string, schema: JsonSchema, optionalOldSelf: boolean): Compiled => {
  const typed = createEnvironment();
  if (!declareSelf(typed, schema, optionalOldSelf))
    return {
      kind: 'invalid',
      message: 'rule compiler initialization error: failed to convert to declType for CEL validation rules',
    };
  try {
    const checked = typed.check(expression);
    if (!checked.valid) return invalidExpression(expression, checked.error);
    const untyped = createEnvironment().registerVariable('self', 'dyn').registerVariable('oldSelf', 'dyn');
    return { kind: 'compiled', type: String(checked.type), run: toProgram(untyped, expression) };
  } catch (error) {
    return invalidExpression(expression, error);
  }
};

/** Variables of a webhook's match condition. Null for a missing object. */
export interface MatchVariables {
  readonly object: Json;
  readonly oldObject: Json;
  readonly request: Json;
}

export type MatchCondition = (variables: MatchVariables) => boolean;

/** Compiles a match condition. Evaluation throws when there is no result, with the reason of Kubernetes. */
export const compileMatchCondition = (
  expression: string,
):
  | { readonly kind: 'compiled'; readonly matches: MatchCondition }
  | { readonly kind: 'invalid'; readonly message: string } => {
  const compiled = compileCel(expression, ['object', 'oldObject', 'request', 'authorizer']);
  if (compiled.kind === 'invalid') return compiled;
  if (compiled.type !== 'bool' && compiled.type !== 'dyn') return { kind: 'invalid', message: 'must evaluate to bool' };
  return {
    kind: 'compiled',
    matches: ({ object, oldObject, request }) =>
      compiled.run({
        object: toUntypedCelValue(object),
        oldObject: toUntypedCelValue(oldObject),
        request: toUntypedCelValue(request),
        authorizer: null,
      }) === true,
  };
};

/**
 * Declares the type of `self` from a schema, so that a rule that reads an unknown field, or compares a number with a string, is
 * rejected when the CRD is created.
 */
const timestamp = 'google.protobuf.Timestamp';

const textTypes: Readonly<Record<string, string>> = {
  'date-time': timestamp,
  datetime: timestamp,
  date: timestamp,
  duration: 'google.protobuf.Duration',
  byte: 'bytes',
};

const scalarTypes: Readonly<Record<string, string>> = { integer: 'int', number: 'double', boolean: 'bool' };

/** Generates names for the object types of one rule. */
interface Names {
  next: number;
}

const declareObject = (environment: Environment, schema: JsonSchema, names: Names): string => {
  const fields = Object.entries(schema.properties ?? {}).flatMap(([name, property]) => {
    const escaped = escapeName(name);
    const type = declare(environment, asResource(property), names);
    return escaped === undefined || type === undefined ? [] : [[escaped, type] as const];
  });
  const typeName = `Object${names.next++}`;
  environment.registerType(typeName, { fields: Object.fromEntries(fields) });
  environment.registerOperator(`${typeName} == ${typeName}`, (a: unknown, b: unknown) => a === b);
  return typeName;
};

/** The name of the type of a schema; undefined for what rules cannot access, such as fields without a type. */
const declare = (environment: Environment, schema: JsonSchema, names: Names): string | undefined => {
  if (schema['x-kubernetes-int-or-string'] === true) return 'dyn';
  if (schema.type === 'string') return textTypes[schema.format ?? ''] ?? 'string';
  if (schema.type === 'array') {
    const item = schema.items === undefined ? undefined : declare(environment, asResource(schema.items), names);
    return item === undefined ? undefined : `list<${item}>`;
  }
  if (schema.type !== 'object') return scalarTypes[schema.type ?? ''];
  const values = valuesOf(schema);
  if (values === undefined) return declareObject(environment, schema, names);
  const value = declare(environment, asResource(values), names);
  return value === undefined ? undefined : `map<string, ${value}>`;
};

/** Declares `self` and `oldSelf` in the environment; false when rules cannot use the type of the schema. */
const declareSelf = (environment: Environment, schema: JsonSchema, optionalOldSelf: boolean): boolean => {
  const type = declare(environment, schema, { next: 0 });
  if (type === undefined) return false;
  environment.registerVariable('self', type);
  environment.registerVariable('oldSelf', optionalOldSelf ? `optional<${type}>` : type);
  return true;
};
