// The form of a rule table. A dialect reports rules of the spec as `image.faults` too, so that an object which bypassed admission fails with
// the same message.
import type { KubeObject } from '#shared/api/object.ts';
import type { KubeClient } from '#shared/clients/kube/client.ts';
import type { Fault } from '#shared/runtime/errors.ts';
import type { Image } from '#shared/backends/backend.ts';

/** Rules that need only the object. Checked at creation. */
export interface SpecRule<T extends KubeObject> {
  /** Stable and unique in its table; RULES.md has a row for each. */
  readonly id: string;
  readonly check: (object: T) => readonly Fault[];
}

/** Whether the object is invalid, or collides with another one. Permissions are checked by access-rule.ts. */
export type RuleReason = 'Invalid' | 'Conflict';

/** Rules that need the cluster, the old object, or the requester. */
export interface RequestRule<T extends KubeObject, S = Image> {
  readonly id: string;
  readonly on: 'CREATE' | 'UPDATE';
  readonly reason: RuleReason;
  check(this: void, request: RuleRequest<T, S>): readonly Fault[] | Promise<readonly Fault[]>;
}

export interface RuleRequest<T extends KubeObject, S = Image> {
  readonly object: T;
  /** The requested state. */
  readonly resource: S;
  /** On UPDATE only, and only if it is valid. */
  readonly before: T | undefined;
  readonly resourceBefore: S | undefined;
  /** Look-ups are bounded: one object, or one page. */
  readonly kube: KubeClient;
}

/** Fills in missing fields of an object; idempotent. */
export interface DefaultRule<T extends KubeObject> {
  readonly id: string;
  fill(this: void, request: DefaultRequest<T>): T | Promise<T>;
}

export type DefaultRequest<T extends KubeObject> = Pick<RuleRequest<T>, 'object' | 'before' | 'kube'>;

export const faultsOf = <T extends KubeObject>(rules: readonly SpecRule<T>[], object: T): readonly Fault[] =>
  rules.flatMap(({ check }) => check(object));

/** A fault if a field is wrong, otherwise empty. */
export const faultIf = (isWrong: boolean, field: string, message: string): readonly Fault[] =>
  isWrong ? [{ field, message }] : [];

/** The fault of a parser's result about a field, empty if it is valid. */
export const faultOf = (
  parsed: { readonly value: unknown } | { readonly problem: string },
  field: string,
): readonly Fault[] => ('problem' in parsed ? [{ field, message: parsed.problem }] : []);
