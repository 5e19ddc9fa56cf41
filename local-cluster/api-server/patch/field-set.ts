// Sets of fields, with the operations that field ownership requires and the FieldsV1 form stored in objects.

import { fromEntries, isObject, type Json, type JsonObject } from '../schema/json.ts';
import { compareSteps, type FieldPath } from './field-path.ts';

/** `members` are the fields in the set; `children` are sets below fields, members or not. Values are immutable. */
export interface FieldSet {
  readonly members: ReadonlySet<string>;
  readonly children: ReadonlyMap<string, FieldSet>;
}

export const emptySet: FieldSet = { members: new Set(), children: new Map() };

export const isEmptySet = (set: FieldSet): boolean =>
  set.members.size === 0 && [...set.children.values()].every(isEmptySet);

export const hasPath = (set: FieldSet, path: FieldPath): boolean => {
  const [step, ...rest] = path;
  if (step === undefined) return false;
  if (rest.length === 0) return set.members.has(step);
  const child = set.children.get(step);
  return child !== undefined && hasPath(child, rest);
};

/** The part of the set below one step. */
export const below = (set: FieldSet, step: string): FieldSet => set.children.get(step) ?? emptySet;

const make = (members: Iterable<string>, children: Iterable<readonly [string, FieldSet]>): FieldSet => ({
  members: new Set(members),
  children: new Map([...children].filter(([, child]) => !isEmptySet(child))),
});

export const unionOf = (a: FieldSet, b: FieldSet): FieldSet => {
  const children = new Map(a.children);
  for (const [step, child] of b.children) {
    const other = children.get(step);
    children.set(step, other === undefined ? child : unionOf(other, child));
  }
  return make([...a.members, ...b.members], children);
};

export const intersectionOf = (a: FieldSet, b: FieldSet): FieldSet =>
  make(
    [...a.members].filter((step) => b.members.has(step)),
    [...a.children].map(([step, child]) => [step, intersectionOf(child, below(b, step))] as const),
  );

/** Members of `a` that are not members of `b`; removing a field keeps what is below it. */
export const differenceOf = (a: FieldSet, b: FieldSet): FieldSet =>
  make(
    [...a.members].filter((step) => !b.members.has(step)),
    [...a.children].map(([step, child]) => [step, differenceOf(child, below(b, step))] as const),
  );

/** As differenceOf, but removing a field removes everything below it too. */
export const recursiveDifferenceOf = (a: FieldSet, b: FieldSet): FieldSet =>
  make(
    [...a.members].filter((step) => !b.members.has(step)),
    [...a.children]
      .filter(([step]) => !b.members.has(step))
      .map(([step, child]) => [step, recursiveDifferenceOf(child, below(b, step))] as const),
  );

/** A set of the given paths. */
export const setOf = (paths: Iterable<FieldPath>): FieldSet => {
  const members = new Set<string>();
  const deeper = new Map<string, FieldPath[]>();
  for (const [step, ...rest] of paths) {
    if (step === undefined) continue;
    if (rest.length === 0) members.add(step);
    else deeper.set(step, [...(deeper.get(step) ?? []), rest]);
  }
  return make(
    members,
    [...deeper].map(([step, rest]) => [step, setOf(rest)] as const),
  );
};

/** All members, a field before those below it. */
export const pathsOf = (set: FieldSet, prefix: FieldPath = []): FieldPath[] => [
  ...[...set.members].toSorted(compareSteps).map((step) => [...prefix, step]),
  ...[...set.children]
    .toSorted(([a], [b]) => compareSteps(a, b))
    .flatMap(([step, child]) => pathsOf(child, [...prefix, step])),
];

const contentsOf = (set: FieldSet, isMember: boolean): JsonObject => {
  const steps = [...new Set([...set.members, ...set.children.keys()])].toSorted(compareSteps);
  const entries = steps.map((step): readonly [string, Json] => {
    const child = set.children.get(step);
    return [step, child === undefined ? {} : contentsOf(child, set.members.has(step))];
  });
  return fromEntries(isMember ? [['.', {}], ...entries] : entries);
};

/** The set as a FieldsV1 document. */
export const toFieldsV1 = (set: FieldSet): JsonObject => contentsOf(set, false);

/** Parses a FieldsV1 document. Steps of unknown form are ignored. */
export const parseFieldsV1 = (fields: unknown): FieldSet => {
  if (!isObject(fields)) return emptySet;
  const entries = Object.entries(fields).filter(([step]) => /^[fkvi]:/.test(step));
  return make(
    entries.filter(([, child]) => isMemberBody(child)).map(([step]) => step),
    entries.map(([step, child]) => [step, parseFieldsV1(child)] as const),
  );
};

const isMemberBody = (body: Json): boolean =>
  !isObject(body) || Object.keys(body).length === 0 || Object.hasOwn(body, '.');
