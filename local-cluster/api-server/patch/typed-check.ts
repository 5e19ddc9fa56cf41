// Whether an object matches its schema well enough to be applied, with the messages of structured-merge-diff.

import { isList, isObject, type Json } from '../schema/json.ts';
import { showPath, fieldStep } from './field-path.ts';
import { atomOf, fieldShape, itemStep, type Atom, type Shape } from './typed-value.ts';

const located = (step: string, faults: readonly string[]): string[] =>
  faults.map((fault) => (/^[.[]/.test(fault) ? `${step}${fault}` : `${step}: ${fault}`));

const goShow = (value: Json): string => (typeof value === 'string' ? value : JSON.stringify(value));

const goType = (value: Json): string => {
  if (typeof value === 'string') return 'string';
  if (typeof value === 'boolean') return 'bool';
  if (typeof value === 'number') return Number.isInteger(value) ? 'int64' : 'float64';
  return isList(value) ? '[]interface {}' : 'map[string]interface {}';
};

const valueView = (value: Json): string =>
  `&value.valueUnstructured{Value:${typeof value === 'string' ? JSON.stringify(value) : goShow(value)}}`;

const isQuantity = (shape: Shape): boolean =>
  typeof shape !== 'string' && shape.schema['x-bullion-type'] === 'Quantity';

/** The scalar type that a shape requires; formats other than byte do not restrict it. */
const scalarTypeOf = (shape: Shape): string => {
  if (typeof shape === 'string') return 'any';
  const { type = 'any', format = '' } = shape.schema;
  if (type === 'integer') return 'number';
  return type === 'string' && (isQuantity(shape) || (format !== '' && format !== 'byte')) ? 'any' : type;
};

const scalarFaults: Readonly<Record<string, (value: Json) => string>> = {
  number: (value) => `expected numeric (int or float), got ${goType(value)}`,
  string: (value) => `expected string, got ${valueView(value)}`,
  boolean: (value) => `expected boolean, got ${goShow(value)}`,
};

const checkScalar = (shape: Shape, value: Json): string[] => {
  if (value === null) return [];
  const type = scalarTypeOf(shape);
  const fault = scalarFaults[type];
  if (fault !== undefined) return typeof value === type ? [] : [fault(value)];
  return isObject(value) || isList(value) ? [`expected any scalar, got ${goShow(value)}`] : [];
};

const checkItems = (atom: Atom & { kind: 'list' }, items: readonly Json[], allowDuplicates: boolean): string[] => {
  const seen = new Set<string>();
  const faults: string[] = [];
  for (const [index, item] of items.entries()) {
    let shown = `[${index}]`;
    if (!atom.atomic) {
      const found = itemStep(atom, item);
      if ('fault' in found) return [...faults, `element ${index}: ${found.fault}`];
      shown = showPath([found.step]);
      if (seen.has(found.step) && !allowDuplicates) faults.push(`duplicate entries for key ${shown}`);
      seen.add(found.step);
    }
    faults.push(...located(shown, checkTyped(atom.item, item, allowDuplicates)));
  }
  return faults;
};

const checkFields = (atom: Atom & { kind: 'map' }, value: Json, allowDuplicates: boolean): string[] => {
  const faults: string[] = [];
  for (const [name, child] of isObject(value) ? Object.entries(value) : []) {
    const shape = fieldShape(atom, name);
    const shown = showPath([fieldStep(name)]);
    if (shape === undefined) return [...faults, `${shown}: field not declared in schema`];
    faults.push(...located(shown, checkTyped(shape, child, allowDuplicates)));
  }
  return faults;
};

/** Everything that prevents a value from being split into fields. Stored objects may repeat keys; applied ones may not. */
export const checkTyped = (shape: Shape, value: Json, allowDuplicates = false): string[] => {
  const atom = atomOf(shape, value);
  if (atom.kind === 'scalar') return checkScalar(shape, value);
  if (value === null) return [];
  if (atom.kind === 'list')
    return isList(value) ? checkItems(atom, value, allowDuplicates) : [`expected list, got &{${goShow(value)}}`];
  return isObject(value) ? checkFields(atom, value, allowDuplicates) : [`expected map, got &{${goShow(value)}}`];
};

/** The errors as one text: a single one alone, several one below the other. */
export const showFaults = (faults: readonly string[]): string =>
  faults.length === 1 ? (faults[0] ?? '') : `errors:\n${faults.map((fault) => `  ${fault}`).join('\n')}`;
