// Objects as values of CEL: numbers typed by the schema, property names escaped to identifiers. Called by cel-rules.ts.
import { isGoInteger, isList, isObject, type Json } from './json.ts';
import { isEmbedded, propertyOf, valuesOf, type JsonSchema } from './json-schema.ts';
import { Environment } from '@marcbachmann/cel-js';
import { registerCollections } from './cel-collections.ts';
import { registerQuantity } from './cel-quantity.ts';
import { registerText } from './cel-text.ts';

/** The CEL environment of an API server: the language plus the functions Kubernetes adds. */
let base: Environment | undefined;

/** A new environment; what is registered in it affects only this one. */
export const createEnvironment = (): Environment => {
  base ??= registerQuantity(
    registerText(
      registerCollections(new Environment({ enableOptionalTypes: true, homogeneousAggregateLiterals: false })),
    ),
  );
  return base.clone();
};

const reserved = new Set(
  'true false null in as break const continue else for function if import let loop package namespace return var void while'.split(
    ' ',
  ),
);

/** A property name as written in rules (`__dash__` for `-`, …); undefined when rules cannot access it. */
export const escapeName = (name: string): string | undefined => {
  if (reserved.has(name)) return `__${name}__`;
  if (!/^[a-zA-Z_./-][a-zA-Z0-9_./-]*$/.test(name)) return undefined;
  return name.replaceAll(/__|[-./]/g, (part) =>
    part === '__' ? '__underscores__' : part === '-' ? '__dash__' : part === '.' ? '__dot__' : '__slash__',
  );
};

const text: JsonSchema = { type: 'string' };
const rootProperties = { apiVersion: text, kind: text };
const rootMetadata: JsonSchema = { type: 'object', properties: { name: text, generateName: text } };

/** The schema with the fields that rules on a whole resource can always read. */
export const withTypeAndMeta = (schema: JsonSchema): JsonSchema => ({
  ...schema,
  properties: { ...schema.properties, ...rootProperties, metadata: rootMetadata },
});

/** The schema of an embedded resource with its type and name; others unchanged. */
export const asResource = (schema: JsonSchema): JsonSchema => (isEmbedded(schema) ? withTypeAndMeta(schema) : schema);

let duration: ((text: string) => unknown) | undefined;

const toDuration = (value: string): unknown => {
  duration ??= (source) =>
    createEnvironment().registerVariable('source', 'string').evaluate('duration(source)', { source });
  return duration(value);
};

const textFormats: Readonly<Record<string, (value: string) => unknown>> = {
  'date-time': (value) => new Date(value),
  datetime: (value) => new Date(value),
  date: (value) => new Date(`${value}T00:00:00Z`),
  duration: toDuration,
  byte: (value) => new Uint8Array(Buffer.from(value, 'base64')),
};

const toText = (value: string, schema: JsonSchema): unknown => (textFormats[schema.format ?? ''] ?? String)(value);

const toNumber = (value: number, schema: JsonSchema): unknown =>
  schema.type === 'number' || !isGoInteger(value) ? value : BigInt(value);

const toMap = (value: { readonly [key: string]: Json }, schema: JsonSchema): unknown => {
  const values = valuesOf(schema);
  if (values !== undefined)
    return new Map(Object.entries(value).map(([key, child]) => [key, toCelValue(child, asResource(values))]));
  const entries = Object.entries(value).flatMap(([key, child]) => {
    const [property, name] = [propertyOf(schema, key), escapeName(key)];
    return property === undefined || name === undefined
      ? []
      : [[name, toCelValue(child, asResource(property))] as const];
  });
  return Object.fromEntries(entries);
};

/** A value of an object, typed by its schema. */
export const toCelValue = (value: Json, schema: JsonSchema): unknown => {
  if (typeof value === 'number') return toNumber(value, schema);
  if (typeof value === 'string') return toText(value, schema);
  if (isList(value)) {
    const items = schema.items === undefined ? {} : asResource(schema.items);
    return value.map((item) => toCelValue(item, items));
  }
  return isObject(value) ? toMap(value, schema) : value;
};

/** A value without a schema: integers are ints, objects are maps with unchanged keys. */
export const toUntypedCelValue = (value: Json): unknown => {
  if (typeof value === 'number') return isGoInteger(value) ? BigInt(value) : value;
  if (isList(value)) return value.map(toUntypedCelValue);
  if (!isObject(value)) return value;
  return new Map(Object.entries(value).map(([key, child]) => [key, toUntypedCelValue(child)]));
};
