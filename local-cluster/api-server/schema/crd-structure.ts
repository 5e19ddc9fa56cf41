// Whether a schema is structural: every field has a type outside of allOf, anyOf, oneOf and not, which may only restrict it.
// Called by crd-schema.ts.

import { causeText, childPath, forbidden, indexPath, invalid, keyPath, required, type Cause } from './cause.ts';
import { compileGoRegExp, goRegExpFault } from './go-regexp.ts';
import { isEmbedded, preservesUnknown, valuesOf, type JsonSchema } from './json-schema.ts';

type Level = 'root' | 'item' | 'field';

const propertyPath = (path: string, name: string): string => keyPath(childPath(path, 'properties'), name);

const isIntOrStringPair = (schemas: readonly JsonSchema[] | undefined): boolean =>
  JSON.stringify(schemas) === '[{"type":"integer"},{"type":"string"}]';

interface Nested {
  readonly name: string;
  readonly schema: JsonSchema;
  /** The pair of types that int-or-string allows here. */
  readonly isTypePair: boolean;
}

const list = (name: string, schemas: readonly JsonSchema[] = [], isTypePair = false): Nested[] =>
  schemas.map((schema, index) => ({ name: indexPath(name, index), schema, isTypePair }));

/** The schemas under logical junctors, with their paths. */
const nestedOf = (schema: JsonSchema): Nested[] => [
  ...list('allOf', schema.allOf),
  ...list('anyOf', schema.anyOf, isIntOrStringPair(schema.anyOf)),
  ...list('oneOf', schema.oneOf),
  ...(schema.not === undefined ? [] : [{ name: 'not', schema: schema.not, isTypePair: false }]),
];

const isSet = (value: unknown): boolean =>
  value !== undefined && value !== '' && value !== false && !(Array.isArray(value) && value.length === 0);

const forbiddenNested: readonly (readonly [keyof JsonSchema, string])[] = [
  ['type', 'must be empty to be structural'],
  ['additionalProperties', 'must be undefined to be structural'],
  ['default', 'must be undefined to be structural'],
  ['title', 'must be empty to be structural'],
  ['description', 'must be empty to be structural'],
  ['nullable', 'must be false to be structural'],
  ['x-kubernetes-preserve-unknown-fields', 'must be false to be structural'],
  ['x-kubernetes-embedded-resource', 'must be false to be structural'],
  ['x-kubernetes-int-or-string', 'must be false to be structural'],
  ['x-kubernetes-list-map-keys', 'must be empty to be structural'],
  ['x-kubernetes-list-type', 'must be undefined to be structural'],
  ['x-kubernetes-map-type', 'must be undefined to be structural'],
  ['x-kubernetes-validations', 'must be empty to be structural'],
];

/** Under an `allOf` rules of CEL do not affect the structure but are forbidden like everything else that is not a restriction. */
const checkNested = (schema: JsonSchema, path: string): Cause[] => [
  ...checkJunctors(schema, path),
  ...(schema.items === undefined ? [] : checkNested(schema.items, childPath(path, 'items'))),
  ...Object.entries(schema.properties ?? {}).flatMap(([name, child]) => checkNested(child, propertyPath(path, name))),
  ...forbiddenNested
    .filter(([keyword]) => isSet(schema[keyword]))
    .map(([keyword, detail]) => forbidden(childPath(path, keyword), detail)),
  ...(schema.properties !== undefined && Object.hasOwn(schema.properties, 'metadata')
    ? [forbidden(propertyPath(path, 'metadata'), 'must not be specified in a nested context')]
    : []),
];

const checkJunctors = (schema: JsonSchema, path: string): Cause[] => {
  const pattern = schema.pattern ?? '';
  return [
    ...nestedOf(schema).flatMap(({ name, schema: nested, isTypePair }) =>
      isTypePair ? [] : checkNested(nested, childPath(path, name)),
    ),
    ...(pattern === '' || compileGoRegExp(pattern) !== undefined
      ? []
      : [
          invalid(
            childPath(path, 'pattern'),
            pattern,
            `must be a valid regular expression, but isn't: ${goRegExpFault(pattern)}`,
          ),
        ]),
  ];
};

const missingType: Record<Level, string> = {
  root: 'must not be empty at the root',
  item: 'must not be empty for specified array items',
  field: 'must not be empty for specified object fields',
};

const embeddedType = 'must be object if x-kubernetes-embedded-resource is true';

const checkType = (schema: JsonSchema, level: Level, path: string): Cause[] => {
  const { type = '' } = schema;
  const at = childPath(path, 'type');
  if (isEmbedded(schema) && type !== 'object')
    return [type === '' ? required(at, embeddedType) : invalid(at, type, embeddedType)];
  const isOpen = schema['x-kubernetes-int-or-string'] === true || preservesUnknown(schema);
  if (type === '' && !isOpen) return [required(at, missingType[level])];
  return level === 'root' && type !== '' && type !== 'object' ? [invalid(at, type, 'must be object at the root')] : [];
};

const checkMetadata = (schema: JsonSchema, level: Level, path: string): Cause[] => {
  if (level !== 'root' && !isEmbedded(schema)) return [];
  const { kind, apiVersion, metadata } = schema.properties ?? {};
  const typed = (name: string, child: JsonSchema | undefined, type: string, detail: string): Cause[] =>
    child === undefined || child.type === type
      ? []
      : [invalid(childPath(propertyPath(path, name), 'type'), child.type ?? '', detail)];
  return [
    ...typed('kind', kind, 'string', 'must be string'),
    ...typed('apiVersion', apiVersion, 'string', 'must be string'),
    ...typed('metadata', metadata, 'object', 'must be object'),
    ...(level === 'root' && metadata !== undefined && restrictsMore(metadata)
      ? [
          forbidden(
            propertyPath(path, 'metadata'),
            'must not specify anything other than name and generateName, but metadata is implicitly specified',
          ),
        ]
      : []),
  ];
};

const restrictsMore = (metadata: JsonSchema): boolean =>
  Object.entries(metadata).some(([keyword, value]) => {
    if (keyword === 'type' || keyword === 'default') return false;
    if (keyword !== 'properties') return isSet(value);
    return Object.keys(metadata.properties ?? {}).some((name) => name !== 'name' && name !== 'generateName');
  });

const checkExtensions = (schema: JsonSchema, path: string): Cause[] => {
  if (schema['x-kubernetes-int-or-string'] !== true) return [];
  const detail = 'must be false if x-kubernetes-int-or-string is true';
  const at = (name: string): string => childPath(path, name);
  return [
    ...(preservesUnknown(schema) ? [invalid(at('x-kubernetes-preserve-unknown-fields'), true, detail)] : []),
    ...(isEmbedded(schema) ? [invalid(at('x-kubernetes-embedded-resource'), true, detail)] : []),
  ];
};

const checkAdditional = (schema: JsonSchema, level: Level, path: string): Cause[] => {
  if (schema.additionalProperties === undefined) return [];
  const at = childPath(path, 'additionalProperties');
  const values = valuesOf(schema);
  return [
    ...(level === 'root' ? [forbidden(at, 'must not be used at the root')] : []),
    ...(isEmbedded(schema) ? [forbidden(at, 'must not be used if x-kubernetes-embedded-resource is set')] : []),
    ...(values === undefined ? [] : checkNode(values, 'field', at)),
  ];
};

const checkEmptiness = (schema: JsonSchema, path: string): Cause[] => [
  ...(schema.type === 'array' && schema.items === undefined
    ? [required(childPath(path, 'items'), 'must be specified')]
    : []),
  ...(isEmbedded(schema) && !preservesUnknown(schema) && Object.keys(schema.properties ?? {}).length === 0
    ? [
        required(
          childPath(path, 'properties'),
          'must not be empty if x-kubernetes-embedded-resource is true without x-kubernetes-preserve-unknown-fields',
        ),
      ]
    : []),
];

const checkNode = (schema: JsonSchema, level: Level, path: string): Cause[] => [
  ...checkEmptiness(schema, path),
  ...(schema.items === undefined ? [] : checkNode(schema.items, 'item', childPath(path, 'items'))),
  ...Object.entries(schema.properties ?? {}).flatMap(([name, child]) =>
    level === 'root' && name === 'metadata' ? [] : checkNode(child, 'field', propertyPath(path, name)),
  ),
  ...checkAdditional(schema, level, path),
  ...checkExtensions(schema, path),
  ...checkJunctors(schema, path),
  ...checkType(schema, level, path),
  ...checkMetadata(schema, level, path),
];

/** A field that a nested schema restricts must be specified outside of it. */
const checkComplete = (nested: JsonSchema, schema: JsonSchema | undefined, paths: [string, string]): Cause[] => {
  const [at, from] = paths;
  if (schema === undefined) return [required(at, `because it is defined in ${from}`)];
  const below = (name: string): [string, string] => [childPath(at, name), childPath(from, name)];
  return [
    ...nestedOf(nested).flatMap(({ name, schema: child }) => checkComplete(child, schema, [at, childPath(from, name)])),
    ...(nested.items === undefined ? [] : checkComplete(nested.items, schema.items, below('items'))),
    ...Object.entries(nested.properties ?? {}).flatMap(([name, child]) =>
      checkComplete(child, schema.properties?.[name], [propertyPath(at, name), propertyPath(from, name)]),
    ),
  ];
};

const checkCompleteness = (schema: JsonSchema, path: string): Cause[] =>
  nestedOf(schema).flatMap(({ name, schema: nested }) => checkComplete(nested, schema, [path, childPath(path, name)]));

/** Everything that keeps a schema from being structural, in the order of Kubernetes. */
export const checkStructure = (schema: JsonSchema, path: string): Cause[] =>
  [...checkNode(schema, 'root', path), ...checkCompleteness(schema, path)].toSorted((a, b) =>
    causeText(a) < causeText(b) ? -1 : 1,
  );
