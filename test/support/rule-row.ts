// Rows that tests of rules are made of: asked of the functions, and of API servers through kubectl.
import type { Asked, Draft } from '#test/support/admission.ts';

/** A rule that looks at other objects: a request that passes, and one that does not. */
export interface ProtectedRow {
  /** That of the rule. */
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
