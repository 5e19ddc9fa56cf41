// The result of a patch. A rejection has the Status that the server returns.
import { type JsonObject, fromEntries, get, isList, isObject, withKey, withoutKey, type Json } from '../schema/json.ts';

export interface PatchRefusal {
  readonly kind: 'refused';
  readonly code: 400 | 409 | 413 | 422 | 500;
  /** Empty for a plain 500, as in Kubernetes. */
  readonly reason: '' | 'BadRequest' | 'Conflict' | 'Invalid' | 'RequestEntityTooLarge';
  /** The message of the Status, as in Kubernetes. */
  readonly message: string;
  /** The exact error, when Kubernetes does not return it; for logs. */
  readonly detail?: string;
  /** Causes of a conflict: one for each field and manager. */
  readonly causes?: readonly { readonly reason: string; readonly message: string; readonly field: string }[];
}

export type PatchOutcome =
  | {
      readonly kind: 'patched';
      readonly object: JsonObject;
      /** Errors of the patch that field validation rejects with `Strict` and reports with `Warn`. */
      readonly strictErrors: readonly string[];
    }
  | PatchRefusal;

export const patched = (object: JsonObject, strictErrors: readonly string[] = []): PatchOutcome => ({
  kind: 'patched',
  object,
  strictErrors,
});

export const badPatch = (message: string): PatchRefusal => ({
  kind: 'refused',
  code: 400,
  reason: 'BadRequest',
  message,
});

// JSON merge patch (RFC 7386) with the behaviour of the server's library: nulls inside new values are dropped too.

/** A new value has no field to delete: its nulls are dropped. Nulls that are list items are kept. */
const withoutNulls = (value: Json): Json => {
  if (isList(value)) return value.map(withoutNulls);
  if (!isObject(value)) return value;
  return fromEntries(
    Object.entries(value)
      .filter(([, child]) => child !== null)
      .map(([key, child]) => [key, withoutNulls(child)] as const),
  );
};

const mergeValue = (current: Json | undefined, patch: Json): Json => {
  if (!isObject(current)) return withoutNulls(patch);
  return isObject(patch) ? mergeObjects(current, patch) : patch;
};

/** The object with the patch merged in: null deletes, objects merge, everything else replaces. */
export const mergeObjects = (object: JsonObject, patch: JsonObject): JsonObject =>
  Object.entries(patch).reduce<JsonObject>(
    (merged, [key, value]) =>
      value === null ? withoutKey(merged, key) : withKey(merged, key, mergeValue(get(merged, key), value)),
    object,
  );

/** Applies a merge patch to an object. A patch that is not an object is rejected with 400. */
export const applyMergePatch = (object: JsonObject, patch: unknown): PatchOutcome => {
  if (isObject(patch)) return patched(mergeObjects(object, patch));
  if (patch === null) return badPatch('Invalid JSON Patch');
  const found = isList(patch) ? 'array' : typeof patch === 'boolean' ? 'bool' : typeof patch;
  return badPatch(
    `error decoding patch: json: cannot unmarshal ${found} into Go value of type map[string]interface {}`,
  );
};
