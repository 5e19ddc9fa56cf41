// Deep equality and copies of JSON values in the server.
import { type Json, jsonEqual } from '../schema/json.ts';

/** Whether two values are the same JSON; the order of keys is ignored, an undefined key counts as absent. */
export const isSame = (left: unknown, right: unknown): boolean => jsonEqual(plain(left), plain(right));

const plain = (value: unknown): Json | undefined =>
  value === undefined ? undefined : (JSON.parse(JSON.stringify(value)) as Json);

export const clone = <T>(value: T): T => structuredClone(value);
