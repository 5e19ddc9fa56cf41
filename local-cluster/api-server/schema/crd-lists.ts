// Whether the list and map types in the schema of a CRD are consistent. Called by crd-rules.ts.

import { childPath, forbidden, invalid, keyPath, notSupported, required, type Cause } from './cause.ts';
import type { JsonSchema } from './json-schema.ts';

const typeFor = (schema: JsonSchema, path: string, type: string, because: string): Cause[] => {
  if (schema.type === type) return [];
  const at = childPath(path, 'type');
  const detail = `must be ${type} if ${because} is specified`;
  return [schema.type === undefined || schema.type === '' ? required(at, detail) : invalid(at, schema.type, detail)];
};

/** x-kubernetes-map-type is allowed only for objects. */
export const checkMapType = (schema: JsonSchema, path: string): Cause[] => {
  const type = schema['x-kubernetes-map-type'];
  if (type === undefined) return [];
  const known = ['atomic', 'granular'];
  return [
    ...typeFor(schema, path, 'object', 'x-kubernetes-map-type'),
    ...(known.includes(type) ? [] : [notSupported(childPath(path, 'x-kubernetes-map-type'), type, known)]),
  ];
};

const checkSetItems = (items: JsonSchema | undefined, path: string): Cause[] => {
  const detail = 'must be atomic as item of a list with x-kubernetes-list-type=set';
  const listType = items?.['x-kubernetes-list-type'];
  if (items?.type === 'array' && listType !== undefined && listType !== 'atomic')
    return [invalid(childPath(path, 'items.x-kubernetes-list-type'), listType, detail)];
  if (items?.type === 'object' && items['x-kubernetes-map-type'] !== 'atomic')
    return [invalid(childPath(path, 'items.x-kubernetes-map-type'), listType ?? null, detail)];
  return [];
};

const checkMapKey = (key: string, items: JsonSchema, path: string): Cause[] => {
  const property = items.properties?.[key];
  const at = keyPath(childPath(path, 'items.properties'), key);
  if (property === undefined) return [];
  const found: Cause[] = [];
  if (property.type === 'array' || property.type === 'object')
    found.push(
      invalid(
        childPath(at, 'type'),
        items.type ?? '',
        "must be a scalar type if parent array's x-kubernetes-list-type is map",
      ),
    );
  if (items.required?.includes(key) !== true && property.default === undefined)
    found.push(
      required(
        childPath(at, 'default'),
        'this property is in x-kubernetes-list-map-keys, so it must have a default or be a required property',
      ),
    );
  if (property.nullable === true)
    found.push(
      forbidden(childPath(at, 'nullable'), 'this property is in x-kubernetes-list-map-keys, so it cannot be nullable'),
    );
  return found;
};

const checkMapItems = (schema: JsonSchema, path: string): Cause[] => {
  const { items, 'x-kubernetes-list-map-keys': keys = [] } = schema;
  const at = childPath(path, 'x-kubernetes-list-map-keys');
  const found: Cause[] = [];
  if (keys.length === 0) found.push(required(at, 'must not be empty if x-kubernetes-list-type is map'));
  if (items === undefined)
    return [...found, required(childPath(path, 'items'), 'must have a schema if x-kubernetes-list-type is map')];
  if (items.type !== 'object')
    return [
      ...found,
      invalid(
        childPath(path, 'items.type'),
        items.type ?? '',
        "must be object if parent array's x-kubernetes-list-type is map",
      ),
    ];
  for (const [index, key] of keys.entries()) {
    if (items.properties?.[key] === undefined)
      found.push(invalid(at, [...keys], 'entries must all be names of item properties'));
    if (keys.indexOf(key) !== index) found.push(invalid(at, [...keys], 'must not contain duplicate entries'));
    found.push(...checkMapKey(key, items, path));
  }
  return found;
};

const checkNullableItems = (schema: JsonSchema, type: string, path: string): Cause[] =>
  schema.items?.nullable === true
    ? [forbidden(childPath(path, 'items.nullable'), `cannot be nullable when x-kubernetes-list-type is ${type}`)]
    : [];

const listTypes = ['atomic', 'set', 'map'];

const checkKeysWithoutMap = (schema: JsonSchema, type: string | undefined, path: string): Cause[] => {
  if ((schema['x-kubernetes-list-map-keys'] ?? []).length === 0 || type === 'map') return [];
  const at = childPath(path, 'x-kubernetes-list-type');
  const detail = 'must be map if x-kubernetes-list-map-keys is non-empty';
  return [type === undefined ? required(at, detail) : invalid(at, type, detail)];
};

/** x-kubernetes-list-type with its keys and items. */
export const checkListType = (schema: JsonSchema, path: string): Cause[] => {
  const type = schema['x-kubernetes-list-type'];
  const strayKeys = checkKeysWithoutMap(schema, type, path);
  if (type === undefined) return strayKeys;
  return [
    ...typeFor(schema, path, 'array', 'x-kubernetes-list-type'),
    ...(listTypes.includes(type) ? [] : [notSupported(childPath(path, 'x-kubernetes-list-type'), type, listTypes)]),
    ...strayKeys,
    ...(type === 'set' ? checkSetItems(schema.items, path) : []),
    ...(type === 'map' ? checkMapItems(schema, path) : []),
    ...(type === 'set' || type === 'map' ? checkNullableItems(schema, type, path) : []),
  ];
};
