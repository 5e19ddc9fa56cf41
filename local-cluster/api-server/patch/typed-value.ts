// How a schema splits a value into fields with separate owners: which maps and lists are one field, and what identifies
// list items. The rules are those of structured-merge-diff over OpenAPI schemas.

import { get, isList, isObject, type Json } from '../schema/json.ts';
import { preservesUnknown, propertyOf, type JsonSchema } from '../schema/json-schema.ts';
import { keyStep, valueStep } from './field-path.ts';

/** `untyped` values are one field whatever they contain; `deduced` ones are split according to their value. */
export type Shape = 'untyped' | 'deduced' | { readonly schema: JsonSchema; readonly preserve: boolean };

export type Atom =
  | { readonly kind: 'scalar' }
  | { readonly kind: 'list'; readonly atomic: boolean; readonly keys: readonly string[]; readonly item: Shape }
  | {
      readonly kind: 'map';
      readonly atomic: boolean;
      /** The shape of a declared field. */
      readonly field: (name: string) => Shape | undefined;
      /** The shape of other keys; undefined when none are allowed. */
      readonly element: Shape | undefined;
    };

export const shapeOf = (schema: JsonSchema): Shape => ({ schema, preserve: false });

const scalar: Atom = { kind: 'scalar' };
const noField = (): undefined => undefined;

const untypedAtom = (value: Json | undefined): Atom => {
  if (isList(value)) return { kind: 'list', atomic: true, keys: [], item: 'untyped' };
  return isObject(value) ? { kind: 'map', atomic: true, field: noField, element: 'untyped' } : scalar;
};

const deducedAtom = (value: Json | undefined): Atom =>
  isObject(value) ? { kind: 'map', atomic: false, field: noField, element: 'deduced' } : untypedAtom(value);

const elementOf = (schema: JsonSchema, preserve: boolean): Shape | undefined => {
  const { additionalProperties: values } = schema;
  if (values === true) return 'deduced';
  if (typeof values === 'object') return { schema: values, preserve };
  if (values === false) return undefined;
  return preserve || Object.keys(schema.properties ?? {}).length === 0 ? 'deduced' : undefined;
};

const mapAtom = (schema: JsonSchema, preserve: boolean): Atom => ({
  kind: 'map',
  atomic: schema['x-kubernetes-map-type'] === 'atomic',
  field: (name) => {
    const property = propertyOf(schema, name);
    return property === undefined ? undefined : { schema: property, preserve };
  },
  element: elementOf(schema, preserve),
});

const listAtom = (schema: JsonSchema, preserve: boolean): Atom => {
  const type = schema['x-kubernetes-list-type'];
  return {
    kind: 'list',
    atomic: type !== 'map' && type !== 'set',
    keys: type === 'map' ? (schema['x-kubernetes-list-map-keys'] ?? []) : [],
    item: schema.items === undefined ? 'untyped' : { schema: schema.items, preserve },
  };
};

const anyAtom = (schema: JsonSchema, preserve: boolean, value: Json | undefined): Atom => {
  if (isList(value)) return listAtom(schema, preserve);
  return isObject(value) ? mapAtom(schema, preserve) : scalar;
};

/** The kind of a value according to its shape. The value matters only when the schema does not determine it. */
export const atomOf = (shape: Shape, value: Json | undefined): Atom => {
  if (shape === 'untyped') return untypedAtom(value);
  if (shape === 'deduced') return deducedAtom(value);
  const { schema } = shape;
  const preserve = shape.preserve || preservesUnknown(schema);
  if (schema['x-kubernetes-int-or-string'] === true) return scalar;
  if (schema.type === undefined || schema.type === '') return anyAtom(schema, preserve, value);
  if (schema.type === 'object') return mapAtom(schema, preserve);
  return schema.type === 'array' ? listAtom(schema, preserve) : scalar;
};

/** The shape of one key of a map; undefined when the schema declares no such field. */
export const fieldShape = (atom: Atom & { readonly kind: 'map' }, name: string): Shape | undefined =>
  atom.field(name) ?? atom.element;

const keyDefault = (item: Shape, name: string): Json | undefined =>
  typeof item === 'string' ? undefined : propertyOf(item.schema, name)?.default;

/** The step to a list item, or the error why it has none. */
export const itemStep = (
  atom: Atom & { readonly kind: 'list' },
  item: Json,
): { readonly step: string } | { readonly fault: string } => {
  if (atom.keys.length === 0) {
    if (isObject(item)) return { fault: "associative list without keys has an element that's a map type" };
    if (isList(item)) return { fault: 'not supported: associative list with lists as elements' };
    if (item === null) return { fault: "associative list without keys has an element that's an explicit null" };
    return { step: valueStep(item) };
  }
  if (item === null) return { fault: 'associative list with keys may not have a null element' };
  if (!isObject(item)) return { fault: 'associative list with keys may not have non-map elements' };
  const keys = atom.keys.flatMap((name) => {
    const value = get(item, name) ?? keyDefault(atom.item, name);
    return value === undefined ? [] : [[name, value] as const];
  });
  if (keys.length > 0) return { step: keyStep(keys) };
  const names = atom.keys.map((name) => `"${name}"`).join(' ');
  return {
    fault: `associative list with keys has an element that omits all key fields [${names}] (and doesn't have default values for any key fields)`,
  };
};

/** The step to a list item; undefined for items without an identity. */
export const stepOf = (atom: Atom & { readonly kind: 'list' }, item: Json): string | undefined => {
  const found = itemStep(atom, item);
  return 'step' in found ? found.step : undefined;
};
