// Translates errors of the CEL library to the messages of the reference compiler, with the position they refer to. Called by cel.ts.

import { EvaluationError, ParseError, TypeError as CelTypeError, type ASTNode } from '@marcbachmann/cel-js';

export type CelError = ParseError | CelTypeError | EvaluationError;

export const isCelError = (error: unknown): error is CelError =>
  error instanceof ParseError || error instanceof CelTypeError || error instanceof EvaluationError;

const runtimeWordings: readonly (readonly [RegExp, string])[] = [
  [/^No such key: index out of bounds, index (-?\d+).*$/, 'index out of bounds: $1'],
  [/^No such key: (.*)$/, 'no such key: $1'],
  [/^no such overload:.*$/, 'no such overload'],
  [/^found no matching overload for .*$/, 'no such overload'],
];

/** The error during the evaluation of an expression. */
export const runtimeWording = (error: CelError): string => {
  const found = runtimeWordings.find(([pattern]) => pattern.test(error.summary));
  return found === undefined ? error.summary : error.summary.replace(found[0], found[1]);
};

interface Located {
  readonly at: number;
  readonly text: string;
}

const typeNames = (types: string): string =>
  types
    .replaceAll('<', '(')
    .replaceAll('>', ')')
    .replaceAll(/\bObject\d+\b/g, 'object');

const nodeOf = (error: CelError): ASTNode | undefined => {
  const { node } = error;
  return node !== undefined && node !== null && 'op' in node && node.op !== undefined ? (node as ASTNode) : undefined;
};

const startOf = (error: CelError): number => error.range?.start ?? 0;

/** `no such overload: int == string`, which the compiler reports at the operator. */
const operatorFault = (expression: string, error: CelError): Located | undefined => {
  const unary = /^no such overload: ([!-])(\S+)$/.exec(error.summary);
  if (unary !== null)
    return {
      at: startOf(error),
      text: `found no matching overload for '${unary[1]}_' applied to '(${typeNames(unary[2] ?? '')})'`,
    };
  const binary = /^no such overload: (.+) (==|!=|<=|>=|<|>|\+|-|\*|\/|%|in) (.+)$/.exec(error.summary);
  if (binary === null) return undefined;
  const [, left = '', operator = '', right = ''] = binary;
  const args: unknown = nodeOf(error)?.args;
  const first = Array.isArray(args) ? (args[0] as { readonly end?: number } | undefined) : undefined;
  const name = operator === 'in' ? '@in' : `_${operator}_`;
  return {
    at: Math.max(expression.indexOf(operator, first?.end ?? startOf(error)), 0),
    text: `found no matching overload for '${name}' applied to '(${typeNames(left)}, ${typeNames(right)})'`,
  };
};

/** A call without a matching overload, or of an undeclared function; reported at the parenthesis. */
const callFault = (expression: string, error: CelError, functions: ReadonlySet<string>): Located | undefined => {
  const call = /^found no matching overload for '(?:(.*)\.)?(\w+)\((.*)\)'$/.exec(error.summary);
  if (call === null) return undefined;
  const [, receiver, name = '', types = ''] = call;
  const node = nodeOf(error);
  const from = node?.op === 'rcall' ? node.args[1].end : startOf(error);
  const at = Math.max(expression.indexOf(`${name}(`, from), 0) + name.length;
  if (!functions.has(name)) return { at, text: `undeclared reference to '${name}' (in container '')` };
  const applied = receiver === undefined ? `(${types})` : `${receiver}.(${types})`;
  return { at, text: `found no matching overload for '${name}' applied to '${typeNames(applied)}'` };
};

const simpleFault = (error: CelError): Located => {
  const { summary } = error;
  const at = startOf(error);
  const field = /^No such key: (.*)$/.exec(summary);
  if (field !== null) return { at: at - 1, text: `undefined field '${field[1] ?? ''}'` };
  const scalar = /^Cannot index type '(.*)'$/.exec(summary);
  if (scalar !== null)
    return { at: at - 1, text: `type '${typeNames(scalar[1] ?? '')}' does not support field selection` };
  const variable = /^Unknown variable: (.*)$/.exec(summary);
  if (variable !== null) return { at, text: `undeclared reference to '${variable[1] ?? ''}' (in container '')` };
  return { at, text: error instanceof ParseError ? `Syntax error: ${summary}` : summary };
};

/** The error with its line and a pointer below, as printed by compilers. `functions` are the declared names. */
export const compileWording = (expression: string, error: CelError, functions: ReadonlySet<string>): string => {
  const { at, text } =
    operatorFault(expression, error) ?? callFault(expression, error, functions) ?? simpleFault(error);
  const before = expression.slice(0, Math.max(at, 0));
  const line = before.split('\n').length;
  const column = before.length - (before.lastIndexOf('\n') + 1);
  const source = expression.split('\n')[line - 1] ?? '';
  return `ERROR: <input>:${line}:${column + 1}: ${text}\n | ${source}\n | ${'.'.repeat(column)}^`;
};
