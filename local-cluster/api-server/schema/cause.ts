// The error of one field, with the message of `field.Error` of apimachinery.

import { goJson, goNumber, goQuote, type Json } from './json.ts';

export type CauseReason =
  | 'FieldValueNotFound'
  | 'FieldValueRequired'
  | 'FieldValueDuplicate'
  | 'FieldValueInvalid'
  | 'FieldValueNotSupported'
  | 'FieldValueForbidden'
  | 'FieldValueTooLong'
  | 'FieldValueTooMany'
  | 'FieldValueTooFew'
  | 'FieldValueTypeInvalid'
  | 'InternalError';

/** One cause of a 422 Status. `message` is the body (`Invalid value: …`); the field is separate. */
export interface Cause {
  readonly reason: CauseReason;
  readonly field: string;
  readonly message: string;
}

/** The path of the object itself, as printed by Go. */
export const rootField = '<nil>';

const label: Record<CauseReason, string> = {
  FieldValueNotFound: 'Not found',
  FieldValueRequired: 'Required value',
  FieldValueDuplicate: 'Duplicate value',
  FieldValueInvalid: 'Invalid value',
  FieldValueNotSupported: 'Unsupported value',
  FieldValueForbidden: 'Forbidden',
  FieldValueTooLong: 'Too long',
  FieldValueTooMany: 'Too many',
  FieldValueTooFew: 'Too few',
  FieldValueTypeInvalid: 'Invalid value',
  InternalError: 'Internal error',
};

const showValue = (value: Json): string => {
  if (typeof value === 'string') return goQuote(value);
  return typeof value === 'number' ? goNumber(value) : goJson(value);
};

const withDetail = (body: string, detail: string): string => (detail === '' ? body : `${body}: ${detail}`);

/** A cause that shows the invalid value. */
const valued = (reason: CauseReason, field: string, value: Json, detail: string): Cause => ({
  reason,
  field: field === '' ? rootField : field,
  message: withDetail(`${label[reason]}: ${showValue(value)}`, detail),
});

/** A cause whose value is not shown. */
const bare = (reason: CauseReason, field: string, detail: string): Cause => ({
  reason,
  field: field === '' ? rootField : field,
  message: withDetail(label[reason], detail),
});

export const invalid = (field: string, value: Json, detail: string): Cause =>
  valued('FieldValueInvalid', field, value, detail);
/** An invalid value that is too large to show. */
export const invalidBare = (field: string, detail: string): Cause => bare('FieldValueInvalid', field, detail);
export const typeInvalid = (field: string, value: Json, detail: string): Cause =>
  valued('FieldValueTypeInvalid', field, value, detail);
export const duplicate = (field: string, value: Json): Cause => valued('FieldValueDuplicate', field, value, '');
/** An invalid value printed as `shown`. */
export const invalidShown = (field: string, shown: string, detail: string): Cause => ({
  reason: 'FieldValueInvalid',
  field,
  message: `${label.FieldValueInvalid}: ${shown}: ${detail}`,
});
/** A repeated value that is too large to show. */
export const duplicateBare = (field: string): Cause => bare('FieldValueDuplicate', field, '');
export const required = (field: string, detail = ''): Cause => bare('FieldValueRequired', field, detail);
export const forbidden = (field: string, detail: string): Cause => bare('FieldValueForbidden', field, detail);

export const notSupported = (field: string, value: Json, supported: readonly string[]): Cause =>
  valued('FieldValueNotSupported', field, value, `supported values: ${supported.map(goQuote).join(', ')}`);

export const tooLong = (field: string, max: number): Cause =>
  bare('FieldValueTooLong', field, `may not be more than ${max} ${max === 1 ? 'byte' : 'bytes'}`);

export const tooMany = (field: string, actual: number, max: number): Cause =>
  valued('FieldValueTooMany', field, actual, `must have at most ${max} ${max === 1 ? 'item' : 'items'}`);

/** `field: body`, as in the message of a 422. */
export const causeText = (cause: Cause): string => `${cause.field}: ${cause.message}`;

export const childPath = (path: string, name: string): string => (path === '' ? name : `${path}.${name}`);
export const indexPath = (path: string, index: number): string => `${path}[${index}]`;
export const keyPath = (path: string, key: string): string => `${path}[${key}]`;
