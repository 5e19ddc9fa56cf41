// Merges an applied object into a stored one, and removes fields from an object.
import { fromEntries, get, isList, isObject, type Json, type JsonObject } from '../schema/json.ts';
import { fieldNameOf, fieldStep } from './field-path.ts';
import { below, isEmptySet, type FieldSet } from './field-set.ts';
import { atomOf, fieldShape, stepOf, type Atom, type Shape } from './typed-value.ts';

type ListAtom = Atom & { readonly kind: 'list' };
type MapAtom = Atom & { readonly kind: 'map' };

interface Keyed {
  readonly step: string;
  readonly item: Json;
}

const keyedItems = (atom: ListAtom, items: readonly Json[]): Keyed[] =>
  items.flatMap((item) => {
    const step = stepOf(atom, item);
    return step === undefined ? [] : [{ step, item }];
  });

const mergeLists = (atom: ListAtom, stored: readonly Json[], applied: readonly Json[]): Json => {
  const [left, right] = [keyedItems(atom, stored), keyedItems(atom, applied)];
  const lefts = Map.groupBy(left, ({ step }) => step);
  const rights = new Map(right.map(({ step, item }) => [step, item]));
  const taken = new Map<string, number>();
  return mergeOrders(
    left.map(({ step }) => step),
    right.map(({ step }) => step),
  ).flatMap((step) => {
    const group = lefts.get(step) ?? [];
    const index = taken.get(step) ?? 0;
    taken.set(step, index + 1);
    const wanted = rights.get(step);
    if (wanted === undefined) return group[index] === undefined ? [] : [group[index].item];
    return [mergeTyped(atom.item, group.length === 1 ? group[0]?.item : undefined, wanted)];
  });
};

const mergeMaps = (atom: MapAtom, stored: JsonObject, applied: JsonObject): Json =>
  fromEntries(
    [...new Set([...Object.keys(stored), ...Object.keys(applied)])].flatMap((name) => {
      const [left, right] = [get(stored, name), get(applied, name)];
      const shape = fieldShape(atom, name);
      if (right === undefined || shape === undefined) return left === undefined ? [] : [[name, left] as const];
      return [[name, mergeTyped(shape, left, right)] as const];
    }),
  );

/** The stored value with the applied one merged in; the applied value has precedence. */
export const mergeTyped = (shape: Shape, stored: Json | undefined, applied: Json): Json => {
  if (stored === undefined) return applied;
  const atom = atomOf(shape, applied);
  if (atom.kind === 'scalar' || atom.atomic) return applied;
  if (atom.kind === 'list') return isList(stored) && isList(applied) ? mergeLists(atom, stored, applied) : applied;
  return isObject(stored) && isObject(applied) ? mergeMaps(atom, stored, applied) : applied;
};

const removeItems = (atom: ListAtom, items: readonly Json[], set: FieldSet): Json[] =>
  items.flatMap((item) => {
    const step = stepOf(atom, item);
    if (step === undefined) return [item];
    return set.members.has(step) ? [] : [removeBelow(atom.item, item, below(set, step))];
  });

const removeFields = (atom: MapAtom, object: JsonObject, set: FieldSet): JsonObject =>
  fromEntries(
    Object.entries(object).flatMap(([name, value]) => {
      const step = fieldStep(name);
      if (set.members.has(step)) return [];
      return [[name, removeBelow(fieldShape(atom, name) ?? 'deduced', value, below(set, step))] as const];
    }),
  );

/** Null when a value that lost something is empty now, as in structured-merge-diff. */
const removeBelow = (shape: Shape, value: Json, set: FieldSet): Json => {
  if (isEmptySet(set)) return value;
  const atom = atomOf(shape, value);
  if (atom.kind === 'scalar' || atom.atomic) return value;
  const isListAtom = atom.kind === 'list';
  const kept = isListAtom
    ? isList(value) && removeItems(atom, value, set)
    : isObject(value) && removeFields(atom, value, set);
  if (kept === false) return value;
  return Object.keys(kept).length === 0 ? null : kept;
};

/** The object without the fields of the set. Maps and lists that are kept but lose their last field become null. */
export const removeTyped = (shape: Shape, object: JsonObject, set: FieldSet): JsonObject => {
  const kept = removeBelow(shape, object, set);
  return isObject(kept) ? kept : {};
};

/** Treats declared fields with members below them as members too, so that they are removed when all of those are. */
export const withNamedFields = (shape: Shape, set: FieldSet): FieldSet => {
  const members = new Set(set.members);
  const children = new Map<string, FieldSet>();
  for (const [step, child] of set.children) {
    const next = shapeBelow(shape, step);
    const name = fieldNameOf(step);
    const atom = atomOf(shape, {});
    if (name !== undefined && atom.kind === 'map' && atom.field(name) !== undefined) members.add(step);
    children.set(step, withNamedFields(next, child));
  }
  return { members, children };
};

const shapeBelow = (shape: Shape, step: string): Shape => {
  const name = fieldNameOf(step);
  const atom = atomOf(shape, name === undefined ? [] : {});
  if (atom.kind === 'list') return atom.item;
  return (atom.kind === 'map' && name !== undefined ? fieldShape(atom, name) : undefined) ?? 'deduced';
};

// The order of a list after an apply.

/** The position of the walk over both lists. Mutable; never leaves this file. */
interface Walk {
  readonly stored: readonly string[];
  readonly applied: readonly string[];
  readonly isApplied: ReadonlySet<string>;
  /** Items of both lists in applied order, the next one first. */
  readonly shared: string[];
  readonly done: Set<string>;
  readonly merged: string[];
  left: number;
  right: number;
}

const takeApplied = (walk: Walk): void => {
  const step = walk.applied[walk.right++];
  if (step === undefined) return;
  walk.merged.push(step);
  walk.done.add(step);
  if (walk.shared[0] === step) walk.shared.shift();
};

/** A stored item that is also applied, but not next: its position is determined by the applied list. */
const isOutOfTurn = (walk: Walk, step: string): boolean =>
  walk.right < walk.applied.length &&
  walk.isApplied.has(step) &&
  walk.shared[0] !== undefined &&
  walk.shared[0] !== step;

const advance = (walk: Walk): void => {
  const step = walk.stored[walk.left];
  if (step === undefined) takeApplied(walk);
  else if (step === walk.applied[walk.right]) {
    takeApplied(walk);
    walk.left += 1;
  } else if (isOutOfTurn(walk, step)) walk.left += 1;
  else if (!walk.isApplied.has(step)) {
    walk.merged.push(step);
    walk.left += 1;
  } else {
    if (walk.done.has(step)) walk.left += 1;
    takeApplied(walk);
  }
};

/** One pass over two lists: items that are only stored keep their position, applied ones are in their own order. */
const mergeOrders = (stored: readonly string[], applied: readonly string[]): readonly string[] => {
  const isStored = new Set(stored);
  const walk: Walk = {
    stored,
    applied,
    isApplied: new Set(applied),
    shared: applied.filter((step) => isStored.has(step)),
    done: new Set(),
    merged: [],
    left: 0,
    right: 0,
  };
  while (walk.left < stored.length || walk.right < applied.length) advance(walk);
  return walk.merged;
};
