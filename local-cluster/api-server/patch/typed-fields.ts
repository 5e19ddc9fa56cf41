// The set of fields in an object, and the differences of two objects per field.

import { get, isList, isObject, jsonEqual, type Json, type JsonObject } from '../schema/json.ts';
import { fieldStep, type FieldPath } from './field-path.ts';
import { setOf, type FieldSet } from './field-set.ts';
import { atomOf, fieldShape, stepOf, type Atom, type Shape } from './typed-value.ts';

type ListAtom = Atom & { readonly kind: 'list' };
type MapAtom = Atom & { readonly kind: 'map' };

const isEmptyMap = (value: Json): boolean => isObject(value) && Object.keys(value).length === 0;

const itemPaths = (atom: ListAtom, items: readonly Json[], path: FieldPath): FieldPath[] => {
  const steps = items.map((item) => stepOf(atom, item));
  const repeated = new Set(steps.filter((step, index) => step !== undefined && steps.indexOf(step) !== index));
  return items.flatMap((item, index) => {
    const step = steps[index];
    if (step === undefined) return [];
    const own = [...path, step];
    return repeated.has(step) ? [own] : [...collectPaths(atom.item, item, own), own];
  });
};

const fieldPaths = (atom: MapAtom, object: JsonObject, path: FieldPath): FieldPath[] =>
  Object.entries(object).flatMap(([name, value]) => {
    const shape = fieldShape(atom, name);
    if (shape === undefined) return [];
    const own = [...path, fieldStep(name)];
    const isLeaf = value === null || isEmptyMap(value) || atom.field(name) === undefined;
    return [...collectPaths(shape, value, own), ...(isLeaf ? [own] : [])];
  });

const collectPaths = (shape: Shape, value: Json, path: FieldPath): FieldPath[] => {
  const atom = atomOf(shape, value);
  if (atom.kind === 'scalar' || atom.atomic) return [path];
  if (atom.kind === 'list') return isList(value) ? itemPaths(atom, value, path) : [];
  return isObject(value) ? fieldPaths(atom, value, path) : [];
};

/** Every field an object sets. */
export const fieldsOf = (shape: Shape, value: Json): FieldSet => setOf(collectPaths(shape, value, []));

/** What changed from one object to another. */
export interface Comparison {
  readonly added: FieldSet;
  readonly removed: FieldSet;
  readonly modified: FieldSet;
}

interface Changes {
  readonly added: FieldPath[];
  readonly removed: FieldPath[];
  readonly modified: FieldPath[];
}

/** The two sides of one place; undefined when a side is missing. */
interface Sides {
  readonly left: Json | undefined;
  readonly right: Json | undefined;
}

const recordLeaf = ({ left, right }: Sides, path: FieldPath, changes: Changes): void => {
  if (left === undefined) changes.added.push(path);
  else if (right === undefined) changes.removed.push(path);
  else if (!jsonEqual(left, right)) changes.modified.push(path);
};

const groupItems = (atom: ListAtom, items: readonly Json[]): Map<string, Json[]> => {
  const groups = new Map<string, Json[]>();
  for (const item of items) {
    const step = stepOf(atom, item);
    if (step !== undefined) groups.set(step, [...(groups.get(step) ?? []), item]);
  }
  return groups;
};

/** Items with the same key are compared as one; an additional duplicate adds the item, a removed one removes it. */
const compareGroup = (shape: Shape, lefts: Json[], rights: Json[], at: [FieldPath, Changes]): void => {
  const [path, changes] = at;
  const [left, right] = [lefts[0], rights[0]];
  if (lefts.length <= 1 && rights.length <= 1) compareSides(shape, { left, right }, path, changes);
  else if (lefts.length >= 2 && rights.length >= 2) {
    if (!jsonEqual(lefts, rights)) changes.modified.push(path);
  } else if (lefts.length >= 2) {
    if (right !== undefined) compareSides(shape, { left: undefined, right }, path, changes);
    changes.removed.push(path);
  } else {
    if (left !== undefined) compareSides(shape, { left, right: undefined }, path, changes);
    changes.added.push(path);
  }
};

const compareLists = (atom: ListAtom, sides: Sides, path: FieldPath, changes: Changes): void => {
  const left = groupItems(atom, isList(sides.left) ? sides.left : []);
  const right = groupItems(atom, isList(sides.right) ? sides.right : []);
  for (const step of new Set([...left.keys(), ...right.keys()]))
    compareGroup(atom.item, left.get(step) ?? [], right.get(step) ?? [], [[...path, step], changes]);
};

const compareMaps = (atom: MapAtom, sides: Sides, path: FieldPath, changes: Changes): void => {
  const left = isObject(sides.left) ? sides.left : {};
  const right = isObject(sides.right) ? sides.right : {};
  for (const name of new Set([...Object.keys(left), ...Object.keys(right)])) {
    const shape = fieldShape(atom, name);
    if (shape === undefined) continue;
    compareSides(shape, { left: get(left, name), right: get(right, name) }, [...path, fieldStep(name)], changes);
  }
};

const sizeOf = (value: Json | undefined): number => {
  if (isList(value)) return value.length;
  return isObject(value) ? Object.keys(value).length : 0;
};

/** Compares according to one shape of the place; returns whether the place is a single field. */
const compareAs = (atom: Atom, sides: Sides, path: FieldPath, changes: Changes): boolean => {
  const isLeaf = atom.kind === 'scalar' || atom.atomic || (sizeOf(sides.left) === 0 && sizeOf(sides.right) === 0);
  if (isLeaf) recordLeaf(sides, path, changes);
  else if (atom.kind === 'list') compareLists(atom, sides, path, changes);
  else compareMaps(atom, sides, path, changes);
  return isLeaf;
};

const compareSides = (shape: Shape, sides: Sides, path: FieldPath, changes: Changes): void => {
  const { left, right } = sides;
  const [leftAtom, rightAtom] = [atomOf(shape, left), atomOf(shape, right)];
  const isSame = left === undefined || leftAtom.kind === rightAtom.kind;
  if (right !== undefined && !isSame) compareAs(leftAtom, sides, path, changes);
  const isLeaf = compareAs(right === undefined ? leftAtom : rightAtom, sides, path, changes);
  if (isLeaf) return;
  if (left === undefined) changes.added.push(path);
  else if (right === undefined) changes.removed.push(path);
};

/** Compares two objects of one shape per field. */
export const compareFields = (shape: Shape, left: Json, right: Json): Comparison => {
  const changes: Changes = { added: [], removed: [], modified: [] };
  compareSides(shape, { left, right }, [], changes);
  return { added: setOf(changes.added), removed: setOf(changes.removed), modified: setOf(changes.modified) };
};
