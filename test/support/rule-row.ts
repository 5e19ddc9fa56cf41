// Rows for tests of rules: sent to the functions, and to API servers through kubectl.
import type { Asked, Draft, Loose } from '#test/support/admission.ts';

/** A rule that needs only an object and its old version. */
export interface AdmissionRow {
  /** Table and ID of the rule, as in RULES.md. */
  readonly id: string;
  readonly allowed: Draft;
  readonly denied: Draft;
  readonly says: RegExp;
  /** The old object of two updates. Default: both are creations. */
  readonly before?: Draft;
}

/** A rule that reads other objects: an accepted and a rejected request. */
export interface ProtectedRow {
  readonly id: string;
  readonly what: string;
  /** Existing objects. */
  readonly given: readonly Draft[];
  /** Permissions of the user, written as in `rightOf`. Default: all. */
  readonly rights?: readonly string[];
  readonly allowed: Asked;
  readonly denied: Asked;
  readonly says: RegExp;
}

/** An accepted request that resembles a rejected one, or that the original would reject: `ids` of the rules. */
export interface ExemptRow {
  readonly ids: readonly string[];
  readonly what: string;
  readonly given: readonly Draft[];
  /** Default: none. */
  readonly rights?: readonly string[];
  readonly asked: Asked;
}

/** Defaults, and fields that stay unchanged. */
export interface FillRow {
  readonly id: string;
  readonly given: readonly Draft[];
  readonly cases: readonly { readonly what: string; readonly object: Draft; readonly becomes: object }[];
}

export const row = (id: string, allowed: Draft, denied: Draft, says: RegExp): AdmissionRow => ({
  id,
  allowed,
  denied,
  says,
});
export const update = (id: string, before: Draft, allowed: Draft, denied: Draft, says: RegExp): AdmissionRow => ({
  ...row(id, allowed, denied, says),
  before,
});
export const described = (draft: Draft): Draft => ({
  ...draft,
  metadata: { ...draft.metadata, labels: { ...(draft.metadata['labels'] as object), touched: 'yes' } },
});
/** A change of an immutable field. */
export const fixed = (id: string, before: Draft, spec: Loose, says: RegExp): AdmissionRow =>
  update(id, before, described(before), { ...before, spec: { ...before.spec, ...spec } }, says);
export const exempt = (ids: string, what: string, given: readonly Draft[], asked: Asked): ExemptRow => ({
  ids: ids.split(' '),
  what,
  given,
  asked,
});
