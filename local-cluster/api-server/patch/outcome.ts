// What came of a patch. A refusal carries the Status the server answers with.

import type { JsonObject } from '../schema/json.ts';

export interface PatchRefusal {
  readonly kind: 'refused';
  readonly code: 400 | 409 | 413 | 422 | 500;
  /** Empty for a plain 500, as Kubernetes leaves it. */
  readonly reason: '' | 'BadRequest' | 'Conflict' | 'Invalid' | 'RequestEntityTooLarge';
  /** The message of the Status, as Kubernetes words it. */
  readonly message: string;
  /** What exactly went wrong, where Kubernetes keeps it to itself; for logs. */
  readonly detail?: string;
  /** Causes of a conflict: one for each field and manager. */
  readonly causes?: readonly { readonly reason: string; readonly message: string; readonly field: string }[];
}

export type PatchOutcome =
  | {
      readonly kind: 'patched';
      readonly object: JsonObject;
      /** Faults of the patch itself that field validation `Strict` refuses and `Warn` warns of. */
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
