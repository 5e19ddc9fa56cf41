// What is forbidden in the schema of a CRD, and whether its CEL rules compile. Called by crd-schema.ts.

import { childPath, forbidden, indexPath, invalid, keyPath, notSupported, type Cause } from './cause.ts';
import { checkCel, checkRule, type Place } from './crd-cel.ts';
import { checkListType, checkMapType } from './crd-lists.ts';
import { isEmbedded, valuesOf, type JsonSchema } from './json-schema.ts';

const types = ['array', 'boolean', 'integer', 'number', 'object', 'string'];
const unsupported = ['id', 'additionalItems', 'patternProperties', 'definitions', 'dependencies', '$ref'];

const checkKeywords = (schema: JsonSchema, place: Place): Cause[] => {
  const at = (name: string): string => childPath(place.path, name);
  const { type = '' } = schema;
  const found: Cause[] = unsupported
    .filter((name) => Object.hasOwn(schema, name))
    .map((name) => forbidden(at(name), `${name} is not supported`));
  if (type !== '' && !types.includes(type)) found.push(notSupported(at('type'), type, types));
  if (type === 'null') found.push(forbidden(at('type'), 'type cannot be set to null, use nullable as an alternative'));
  if (schema.default !== undefined && place.noDefaults !== undefined)
    found.push(forbidden(at('default'), `must not be set ${place.noDefaults}`));
  if (place.inMeta === true && isEmbedded(schema))
    found.push(forbidden(at('x-kubernetes-embedded-resource'), 'must not be used inside of resource meta'));
  if (schema.uniqueItems === true)
    found.push(
      forbidden(at('uniqueItems'), 'uniqueItems cannot be set to true since the runtime complexity becomes quadratic'),
    );
  if (schema['x-kubernetes-preserve-unknown-fields'] === false)
    found.push(invalid(at('x-kubernetes-preserve-unknown-fields'), false, 'must be true or undefined'));
  return found;
};

const checkAdditional = (schema: JsonSchema, place: Place): Cause[] => {
  const values = schema.additionalProperties;
  const isExclusive = values !== undefined && values !== true && Object.keys(schema.properties ?? {}).length > 0;
  const at = childPath(place.path, 'additionalProperties');
  return isExclusive ? [forbidden(at, 'additionalProperties and properties are mutual exclusive')] : [];
};

const metaFields = new Set(['metadata', 'kind', 'apiVersion']);

const placeOfProperty = (schema: JsonSchema, name: string, place: Place): Place => {
  const isMeta = (place.isRoot || isEmbedded(schema)) && metaFields.has(name);
  return {
    ...place,
    path: keyPath(childPath(place.path, 'properties'), name),
    isRoot: false,
    ...(isMeta ? { inMeta: true } : {}),
    ...(isMeta && place.isRoot ? { noDefaults: `in top-level ${name}` } : {}),
  };
};

const placeOfItems = (schema: JsonSchema, place: Place): Place => {
  const isPaired = schema['x-kubernetes-list-type'] === 'map';
  const unpaired = place.unpaired ?? (isPaired ? undefined : place.path);
  return {
    ...place,
    path: childPath(place.path, 'items'),
    isRoot: false,
    ...(unpaired === undefined ? {} : { unpaired }),
  };
};

const children = (schema: JsonSchema, place: Place): (readonly [JsonSchema, Place])[] => {
  const nested = (name: string): Place => ({
    ...place,
    path: childPath(place.path, name),
    isRoot: false,
    compiles: false,
  });
  const values = valuesOf(schema);
  const inValues = { ...place, path: childPath(place.path, 'additionalProperties'), isRoot: false };
  const noDefaults = 'inside additionalProperties applying to object metadata';
  return [
    ...(values === undefined
      ? []
      : [[values, place.inMeta === true ? { ...inValues, noDefaults } : inValues] as const]),
    ...Object.entries(schema.properties ?? {}).map(
      ([name, child]) => [child, placeOfProperty(schema, name, place)] as const,
    ),
    ...(schema.not === undefined ? [] : [[schema.not, nested('not')] as const]),
    ...(['allOf', 'oneOf', 'anyOf'] as const).flatMap((name) =>
      (schema[name] ?? []).map((child, index) => [child, nested(indexPath(name, index))] as const),
    ),
    ...(schema.items === undefined ? [] : [[schema.items, placeOfItems(schema, place)] as const]),
  ];
};

interface Found {
  readonly shape: readonly Cause[];
  readonly rules: readonly Cause[];
}

/** Rules are compiled only if the schema below them is valid: otherwise they would report errors of the schema. */
const checkPlace = (schema: JsonSchema, place: Place): Found => {
  const below = children(schema, place).map(([child, at]) => checkPlace(child, at));
  const shape = [
    ...checkKeywords(schema, place),
    ...checkAdditional(schema, place),
    ...below.flatMap((found) => found.shape),
    ...checkMapType(schema, place.path),
    ...checkListType(schema, place.path),
    ...(schema['x-kubernetes-validations'] ?? []).flatMap((rule, index) =>
      checkRule(rule, schema, indexPath(childPath(place.path, 'x-kubernetes-validations'), index)),
    ),
  ];
  const own = shape.length === 0 && place.compiles ? checkCel(schema, place) : [];
  return { shape, rules: [...below.flatMap((found) => found.rules), ...own] };
};

/** Forbidden keywords, list types and rules in the schema of a CRD. `compiles` is false when it is not structural. */
export const checkSchemaRules = (schema: JsonSchema, path: string, compiles: boolean): Cause[] => {
  const { shape, rules } = checkPlace(schema, { path, isRoot: true, compiles });
  return [...shape, ...rules];
};
