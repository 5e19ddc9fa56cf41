// Compiles CEL expressions: validation rules of CRDs (cel-rules.ts) and match conditions of webhooks (the API server).

import { EvaluationError, ParseError, TypeError as CelTypeError, type Environment } from '@marcbachmann/cel-js';
import { createEnvironment } from './cel-library.ts';
import { declareSelf } from './cel-types.ts';
import { toUntypedCelValue } from './cel-values.ts';
import type { Json } from './json.ts';
import type { JsonSchema } from './json-schema.ts';

/** Runs a compiled expression. Throws an Error whose message is what Kubernetes says of the fault. */
export type Program = (variables: Readonly<Record<string, unknown>>) => unknown;

export type Compiled =
  | { readonly kind: 'compiled'; readonly type: string; readonly run: Program }
  | { readonly kind: 'invalid'; readonly message: string };

type CelError = ParseError | CelTypeError | EvaluationError;

const isCelError = (error: unknown): error is CelError =>
  error instanceof ParseError || error instanceof CelTypeError || error instanceof EvaluationError;

/** What the reference implementation says where the library says otherwise. */
const wordings: readonly (readonly [RegExp, string])[] = [
  [/^No such key: index out of bounds, index (-?\d+).*$/, 'index out of bounds: $1'],
  [/^No such key: (.*)$/, 'no such key: $1'],
  [/^no such overload:.*$/, 'no such overload'],
  [/^Unknown variable: (.*)$/, "undeclared reference to '$1' (in container '')"],
  [/^found no matching overload for .*$/, 'found no matching overload'],
];

const reword = (summary: string): string => {
  const found = wordings.find(([pattern]) => pattern.test(summary));
  return found === undefined ? summary : summary.replace(found[0], found[1]);
};

const compileWording = (summary: string): string =>
  reword(
    summary
      .replace(/^No such key: (.*)$/, "undefined field '$1'")
      .replace(/^no such overload: (.*)$/, 'found no matching overload for $1'),
  );

/** The fault with the line it is in and a pointer below, as compilers print it. */
const showFault = (expression: string, error: CelError): string => {
  // The reference compiler points to the dot before a field that is not there.
  const at = (error.range?.start ?? 0) - (error.code === 'no_such_key' ? 1 : 0);
  const before = expression.slice(0, at);
  const line = before.split('\n').length;
  const column = at - (before.lastIndexOf('\n') + 1);
  const source = expression.split('\n')[line - 1] ?? '';
  const kind = error instanceof ParseError ? 'Syntax error: ' : '';
  return `ERROR: <input>:${line}:${column + 1}: ${kind}${compileWording(error.summary)}\n | ${source}\n | ${'.'.repeat(column)}^`;
};

const invalidExpression = (expression: string, error: unknown): Compiled => {
  if (!isCelError(error)) throw error;
  return { kind: 'invalid', message: `compilation failed: ${showFault(expression, error)}` };
};

const toProgram = (environment: Environment, expression: string): Program => {
  const parsed = environment.parse(expression);
  return (variables) => {
    try {
      return parsed(variables) as unknown;
    } catch (error) {
      if (isCelError(error)) throw new Error(reword(error.summary), { cause: error });
      throw error;
    }
  };
};

/** Whether an expression reads a variable, other than inside a text or as a field. */
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

/** Compiles an expression over `self` and `oldSelf` of the type a schema gives them. */
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

/** Variables of a webhook's match condition. Null stands for an object that is not there. */
export interface MatchVariables {
  readonly object: Json;
  readonly oldObject: Json;
  readonly request: Json;
}

export type MatchCondition = (variables: MatchVariables) => boolean;

/** Compiles a match condition. It throws when it cannot be decided, with the reason Kubernetes gives. */
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
