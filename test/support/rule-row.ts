// Rows that tests of rules are made of: asked of the functions, and of API servers through kubectl.
import type { Asked, Draft, Loose } from '#test/support/admission.ts';

/** A rule that needs no more than an object and its older self. */
export interface AdmissionRow {
  /** Table and id of the rule, as RULES.md has it. */
  readonly id: string;
  readonly allowed: Draft;
  readonly denied: Draft;
  readonly says: RegExp;
  /** Left out: both are creations. Else they are updates of this. */
  readonly before?: Draft;
}

/** A rule that looks at other objects: a request that passes, and one that does not. */
export interface ProtectedRow {
  readonly id: string;
  readonly what: string;
  /** What is in the cluster. */
  readonly given: readonly Draft[];
  /** Rights of the user, as `rightOf` writes them; left out: all. */
  readonly rights?: readonly string[];
  readonly allowed: Asked;
  readonly denied: Asked;
  readonly says: RegExp;
}

/** What passes although it looks like what does not, or as the original would refuse it: `ids` of the rules. */
export interface ExemptRow {
  readonly ids: readonly string[];
  readonly what: string;
  readonly given: readonly Draft[];
  /** Left out: none. */
  readonly rights?: readonly string[];
  readonly asked: Asked;
}

/** What is filled in, and what is left as it was written. */
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
/** A fixed field changed. */
export const fixed = (id: string, before: Draft, spec: Loose, says: RegExp): AdmissionRow =>
  update(id, before, described(before), { ...before, spec: { ...before.spec, ...spec } }, says);
export const exempt = (ids: string, what: string, given: readonly Draft[], asked: Asked): ExemptRow => ({
  ids: ids.split(' '),
  what,
  given,
  asked,
});
