// Checks of a single value: type, string, number, enum. Called for every node by validate.ts.

import { goJson, goNumber, goQuote, isGoInteger, isList, isObject, jsonEqual, type Json } from './json.ts';
import { compileGoRegExp } from './go-regexp.ts';
import { enforcedFormat, matchesFormat } from './formats.ts';
import {
  composite,
  fail,
  matched,
  mergeResults,
  notInEnum,
  passed,
  tooLongText,
  wrongType,
  wrongValue,
  type Failure,
  type Result,
} from './failure.ts';
import type { JsonSchema } from './json-schema.ts';

export const typesOf = (schema: JsonSchema): readonly string[] => {
  if (schema['x-kubernetes-int-or-string'] === true) return ['integer', 'string'];
  return schema.type === undefined || schema.type === '' ? [] : [schema.type];
};

/** JSON type of a value and its format in Go. */
const kindOf = (value: Json): readonly [type: string, format: string] => {
  if (typeof value === 'number') return isGoInteger(value) ? ['integer', 'int64'] : ['number', 'float64'];
  if (isList(value)) return ['array', ''];
  return isObject(value) ? ['object', ''] : [typeof value, ''];
};

export const checkNull = (schema: JsonSchema, path: string): Result => {
  const types = typesOf(schema);
  if (types.length > 0 && schema.nullable !== true) return fail(wrongType(path, types.join(','), 'null'));
  return matched;
};

const fitsType = (types: readonly string[], type: string): boolean =>
  types.includes(type) || (type === 'integer' && types.includes('number'));

export const checkType = (schema: JsonSchema, value: Json, path: string): Result => {
  const types = typesOf(schema);
  const wanted = enforcedFormat(types, schema.format);
  const [type, format] = kindOf(value);
  const isText = type === 'string' || type === 'array';
  if (!isText && wanted !== '' && !fitsType(types, type) && format !== wanted)
    return fail(wrongType(path, wanted, format));
  const isNumeric = types.includes('number') || types.includes('integer');
  if (isText && wanted !== '' && !isNumeric) return matched;
  return fitsType(types, type) ? matched : fail(wrongType(path, types.join(','), type));
};

const checkLength = (schema: JsonSchema, value: string, path: string): Failure | undefined => {
  const length = Array.from(value).length;
  if (schema.maxLength !== undefined && length > schema.maxLength) return tooLongText(path, schema.maxLength);
  if (schema.minLength !== undefined && length < schema.minLength)
    return wrongValue(path, value, `should be at least ${schema.minLength} chars long`);
  return undefined;
};

const checkPattern = (pattern: string, value: string, path: string): Failure | undefined =>
  compileGoRegExp(pattern)?.test(value) === true ? undefined : wrongValue(path, value, `should match '${pattern}'`);

export const checkString = (schema: JsonSchema, value: string, path: string): Result => {
  const pattern = schema.pattern ?? '';
  const failure = checkLength(schema, value, path) ?? (pattern === '' ? undefined : checkPattern(pattern, value, path));
  return failure === undefined ? passed : fail(failure);
};

export const checkFormat = (schema: JsonSchema, value: string, path: string): Result | undefined => {
  const format = enforcedFormat(typesOf(schema), schema.format);
  if (format === '' || ['int32', 'int64', 'float', 'double'].includes(format)) return undefined;
  if (matchesFormat(format, value)) return passed;
  const text = `must be of type ${format}: ${goQuote(value)}`;
  return fail({ ...wrongType(path, format, value), text: `${path} in body ${text}` });
};

const int64Limit = 2 ** 63;

const rangeFailure = (schema: JsonSchema, value: number, what: string, path: string): Failure | undefined => {
  const types = typesOf(schema);
  if (types.length !== 1) return undefined;
  const format = enforcedFormat(types, schema.format);
  const limit = types[0] === 'integer' ? (format === 'int32' ? 2 ** 31 : int64Limit) : Infinity;
  const tooBig = value >= limit || value < -limit || (types[0] === 'integer' && !isGoInteger(value));
  const tooBigForFloat = format === 'float' && Math.abs(value) > 3.402_823_466_385_288_6e38;
  if (!tooBig && !tooBigForFloat) return undefined;
  const suffix = format === '' ? '(default format)' : `with format ${format}`;
  return composite(`${what} value must be of type ${types[0] ?? ''} ${suffix} in ${path}`);
};

/** Limits are compared as integers where the value is one, as Go does. */
const asLimit = (limit: number, value: number): number => (isGoInteger(value) ? Math.trunc(limit) : limit);

const checkMaximum = (schema: JsonSchema, value: number, path: string): Failure | undefined => {
  if (schema.maximum === undefined) return undefined;
  const limit = asLimit(schema.maximum, value);
  const exclusive = schema.exclusiveMaximum === true;
  if (exclusive ? value < limit : value <= limit) return undefined;
  return wrongValue(path, value, `should be less than ${exclusive ? '' : 'or equal to '}${goNumber(limit)}`);
};

const checkMinimum = (schema: JsonSchema, value: number, path: string): Failure | undefined => {
  if (schema.minimum === undefined) return undefined;
  const limit = asLimit(schema.minimum, value);
  const exclusive = schema.exclusiveMinimum === true;
  if (exclusive ? value > limit : value >= limit) return undefined;
  return wrongValue(path, value, `should be greater than ${exclusive ? '' : 'or equal to '}${goNumber(limit)}`);
};

/** Whether a quotient is an integer: within the exact range of JSON numbers, and up to a rounding error. */
const isWhole = (value: number): boolean => {
  if (Math.abs(value) > Number.MAX_SAFE_INTEGER) return false;
  const whole = Math.trunc(value);
  return value === whole || Math.abs(value - whole) / (Math.abs(value) + Math.abs(whole)) < 1e-9;
};

const checkMultiple = (schema: JsonSchema, value: number, path: string): Failure | undefined => {
  if (schema.multipleOf === undefined) return undefined;
  const factor = asLimit(schema.multipleOf, value);
  if (factor <= 0)
    return {
      ...wrongValue(path, factor, ''),
      text: `factor MultipleOf declared for ${path} must be positive: ${goNumber(factor)}`,
    };
  const quotient = factor < 1 ? (1 / factor) * value : value / factor;
  return isWhole(quotient) ? undefined : wrongValue(path, value, `should be a multiple of ${goNumber(factor)}`);
};

export const checkNumber = (schema: JsonSchema, value: number, path: string): Result => {
  const found = [
    rangeFailure(schema, value, 'Checked', path),
    checkMultiple(schema, value, path),
    checkMinimum(schema, value, path),
    checkMaximum(schema, value, path),
  ].filter((failure) => failure !== undefined);
  return mergeResults([fail(...found), matched]);
};

export const checkEnum = (schema: JsonSchema, value: Json, path: string): Result => {
  const allowed = schema.enum ?? [];
  // Go cannot compare null with any value here: null is never one of them.
  if (allowed.length === 0 || (value !== null && allowed.some((item) => jsonEqual(item, value)))) return passed;
  return fail(
    notInEnum(
      path,
      value,
      allowed.map((item) => (typeof item === 'string' ? item : goJson(item))),
    ),
  );
};
