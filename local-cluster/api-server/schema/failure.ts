// The result of schema checks. Checks of a node are merged into a result whose match count determines the best branch of an anyOf.

import type { Json } from './json.ts';
import { childPath, invalid, notSupported, required, tooLong, tooMany, typeInvalid, type Cause } from './cause.ts';

export interface Failure {
  /** The message of Kubernetes; two failures with the same message are one. */
  readonly text: string;
  /** Path of the value, or undefined for failures that are reported for the whole object. */
  readonly path: string | undefined;
  readonly toCause: (field: string, text: string) => Cause;
}

export interface Result {
  readonly failures: readonly Failure[];
  readonly matches: number;
}

export const passed: Result = { failures: [], matches: 0 };
export const matched: Result = { failures: [], matches: 1 };

export const mergeResults = (results: readonly (Result | undefined)[]): Result => {
  const failures = new Map<string, Failure>();
  let matches = 0;
  for (const result of results) {
    for (const failure of result?.failures ?? []) if (!failures.has(failure.text)) failures.set(failure.text, failure);
    matches += result?.matches ?? 0;
  }
  return { failures: [...failures.values()], matches };
};

export const fail = (...failures: readonly Failure[]): Result => ({ failures, matches: 0 });

export const wrongType = (path: string, expected: string, found: string): Failure => ({
  text: `${path} in body must be of type ${expected}: ${JSON.stringify(found)}`,
  path,
  toCause: (field, text) => typeInvalid(field, found, text),
});

export const wrongValue = (path: string, value: Json, text: string): Failure => ({
  text: `${path} in body ${text}`,
  path,
  toCause: (field, detail) => invalid(field, value, detail),
});

export const missing = (path: string): Failure => ({
  text: `${path} in body is required`,
  path,
  toCause: (field) => required(field),
});

export const notInEnum = (path: string, value: Json, allowed: readonly string[]): Failure => ({
  text: `${path} in body should be one of [${allowed.join(' ')}]`,
  path,
  toCause: (field) => notSupported(field, value, allowed),
});

export const tooLongText = (path: string, max: number): Failure => ({
  text: `${path} in body should be at most ${max} chars long`,
  path,
  toCause: (field) => tooLong(field, max),
});

export const tooManyOf = (path: string, actual: number, max: number, what: 'items' | 'properties'): Failure => ({
  text: `${path} in body should have at most ${max} ${what}`,
  path,
  toCause: (field) => tooMany(field, actual, max),
});

/** A failure of a whole construct (anyOf, a number beyond its format): Kubernetes names no field for it. */
export const composite = (text: string): Failure => ({
  text,
  path: undefined,
  toCause: (field, detail) => invalid(field, '', detail),
});

/** The failure as a cause; `prefix` is the path of the validated value within the object. */
export const toCause = (failure: Failure, prefix: string): Cause => {
  const path = (failure.path ?? '').replace(/^\./, '');
  return failure.toCause(path === '' ? prefix : childPath(prefix, path), failure.text);
};
