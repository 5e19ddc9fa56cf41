// What can be wrong with a strategic merge patch, worded as Go words it.
import { isGoInteger, isObject, type Json } from '../schema/json.ts';

/** Key of an object that says what to do with it instead of merging it. */
export const directive = '$patch';

/** A fault of the patch; `code` 400 when Kubernetes calls it a bad request, 500 where it knows no better. */
export class StrategicFault extends Error {
  override readonly name = 'StrategicFault';
  readonly code: 400 | 422 | 500;

  constructor(code: 400 | 422 | 500, message: string) {
    super(message);
    this.code = code;
  }
}

/** The Go type a JSON value is decoded into. */
export const goKind = (value: Json): string => {
  if (typeof value === 'boolean') return 'bool';
  if (typeof value === 'number') return isGoInteger(value) ? 'int64' : 'float64';
  return isObject(value) ? 'map[string]interface {}' : value === null ? 'nil' : 'string';
};
