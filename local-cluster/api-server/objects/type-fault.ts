// Finds the first value whose JSON type does not match the Go type of a built-in field, with the message of encoding/json.
import { type JsonSchema, childOf } from '../schema/json-schema.ts';
import { isFields } from './object.ts';

const jsonType = (value: unknown): string => {
  if (Array.isArray(value)) return 'array';
  if (value === null) return 'null';
  if (typeof value === 'boolean') return 'bool';
  return typeof value === 'object' ? 'object' : typeof value;
};

/** JSON types that a schema type accepts. */
const takes: Readonly<Record<string, readonly string[]>> = {
  string: ['string'],
  boolean: ['bool'],
  integer: ['number'],
  number: ['number'],
  array: ['array'],
  object: ['object'],
};

const goTypes: Readonly<Record<string, string>> = {
  string: 'string',
  boolean: 'bool',
  integer: 'int32',
  number: 'float64',
};

const goType = (schema: JsonSchema): string => {
  if (schema.type === 'integer') return schema.format === 'int64' ? 'int64' : 'int32';
  if (schema.type === 'array') return `[]${schema.items === undefined ? 'interface {}' : goType(schema.items)}`;
  if (schema.type === 'object') {
    const values = schema.additionalProperties;
    if (typeof values === 'object') return `map[string]${goType(values)}`;
    return `v1.${schema['x-bullion-type'] ?? 'Object'}`;
  }
  return goTypes[schema.type ?? ''] ?? 'interface {}';
};

/** Quantities and times are strings with parsers of their own. */
const isFree = (schema: JsonSchema): boolean =>
  schema.type === undefined ||
  schema['x-kubernetes-int-or-string'] === true ||
  schema['x-kubernetes-preserve-unknown-fields'] === true ||
  schema['x-bullion-type'] === 'Quantity';

/** The error of Go's decoder for invalid base64; undefined when it is valid. */
const base64Fault = (text: string): string | undefined => {
  const bad = /[^A-Za-z0-9+/=\r\n]/.exec(text);
  if (bad !== null) return `illegal base64 data at input byte ${bad.index}`;
  const bare = text.replaceAll(/[\r\n]/g, '');
  return bare.length % 4 === 0 ? undefined : `illegal base64 data at input byte ${bare.length - (bare.length % 4)}`;
};

/** `string into Go struct field PodSpec.spec.containers of type []v1.Container`, or undefined when all types fit. */
export const findTypeFault = (schema: JsonSchema, value: unknown, path: string): string | undefined => {
  if (value === null || value === undefined || isFree(schema)) return undefined;
  if (schema.format === 'byte' && typeof value === 'string') return base64Fault(value);
  const found = jsonType(value);
  if (!(takes[schema.type ?? ''] ?? [found]).includes(found)) {
    return `${found} into Go struct field ${path} of type ${goType(schema)}`;
  }
  if (Array.isArray(value)) return firstFault(value.map((item) => [schema.items ?? {}, item, path]));
  if (!isFields(value)) return undefined;
  return firstFault(
    Object.entries(value).map(([key, item]) => [
      childOf(schema, key) ?? {},
      item,
      schema.properties === undefined ? path : `${path}.${key}`,
    ]),
  );
};

const firstFault = (children: readonly (readonly [JsonSchema, unknown, string])[]): string | undefined => {
  for (const [schema, value, path] of children) {
    const fault = findTypeFault(schema, value, path);
    if (fault !== undefined) return fault;
  }
  return undefined;
};
