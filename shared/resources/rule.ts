// The form of a rule table. Rules of a spec alone are also what a dialect reports as `image.faults`, so that an object which slipped past
// admission fails with the same words.
import type { KubeObject } from '#shared/api/object.ts';
import type { KubeClient } from '#shared/clients/kube/client.ts';
import type { Fault } from '#shared/runtime/errors.ts';
import type { Image } from '#shared/backends/image.ts';

/** What can be said of an object by looking at it. Checked at creation. */
export interface SpecRule<T extends KubeObject> {
  /** A word, stable and unique in its table; RULES.md has a row for each. */
  readonly id: string;
  readonly check: (object: T) => readonly Fault[];
}

/** What is wrong with the object, or what it collides with. What its author may not do is access-rule.ts's to say. */
export type RuleReason = 'Invalid' | 'Conflict';

/** What takes a look at the cluster, at the object's older self, or at who asks. */
export interface RequestRule<T extends KubeObject, S = Image> {
  readonly id: string;
  readonly on: 'CREATE' | 'UPDATE';
  readonly reason: RuleReason;
  readonly check: (request: RuleRequest<T, S>) => readonly Fault[] | Promise<readonly Fault[]>;
}

export interface RuleRequest<T extends KubeObject, S = Image> {
  readonly object: T;
  /** What the object asks for. */
  readonly resource: S;
  /** On UPDATE only, and only where it can be read. */
  readonly before: T | undefined;
  readonly resourceBefore: S | undefined;
  /** Look-ups are bounded: one object, or one page. */
  readonly kube: KubeClient;
}

/** Fills in what an object leaves open; does nothing the second time. */
export interface DefaultRule<T extends KubeObject> {
  readonly id: string;
  readonly fill: (request: DefaultRequest<T>) => T | Promise<T>;
}

export type DefaultRequest<T extends KubeObject> = Pick<RuleRequest<T>, 'object' | 'before' | 'kube'>;

export const faultsOf = <T extends KubeObject>(rules: readonly SpecRule<T>[], object: T): readonly Fault[] =>
  rules.flatMap(({ check }) => check(object));

/** A fault when something is wrong with a field, nothing otherwise. */
export const faultIf = (isWrong: boolean, field: string, message: string): readonly Fault[] =>
  isWrong ? [{ field, message }] : [];

/** The fault of a parser's answer about a field, nothing when it could read it. */
export const faultOf = (
  parsed: { readonly value: unknown } | { readonly problem: string },
  field: string,
): readonly Fault[] => ('problem' in parsed ? [{ field, message: parsed.problem }] : []);
