// Objects as values of CEL: numbers typed by the schema, property names escaped to identifiers. Called by cel-rules.ts.
import { Environment } from '@marcbachmann/cel-js';
import { registerCollections } from './cel-collections.ts';
import { registerText } from './cel-text.ts';
import { isEmbedded, type JsonSchema, propertyOf, valuesOf } from './json-schema.ts';
import { isGoInteger, isList, isObject, type Json } from './json.ts';

// Resource quantities in CEL: quantity("1.5Gi"), isQuantity, compareTo, add, sub.

/** A quantity as a number of nano units, the finest precision of Kubernetes. */
class Quantity {
  readonly nano: bigint;

  constructor(nano: bigint) {
    this.nano = nano;
  }
}

const decimal: Readonly<Record<string, number>> = { n: -9, u: -6, m: -3, '': 0, k: 3, M: 6, G: 9, T: 12, P: 15, E: 18 };
const binary: Readonly<Record<string, number>> = { Ki: 1, Mi: 2, Gi: 3, Ti: 4, Pi: 5, Ei: 6 };

const pattern = /^([+-]?)(\d+\.?\d*|\.\d+)(?:([numkMGTPE]|[KMGTPE]i)|[eE]([+-]?\d+))?$/;

/** Rounds up, away from zero, as Kubernetes does with more precise values. */
const divideUp = (value: bigint, divisor: bigint): bigint => (value + divisor - 1n) / divisor;

const scale = (value: bigint, power: number): bigint =>
  power >= 0 ? value * 10n ** BigInt(power) : divideUp(value, 10n ** BigInt(-power));

/** Parses a quantity; undefined for invalid text. */
const parseQuantity = (text: string): Quantity | undefined => {
  const match = pattern.exec(text);
  if (match === null) return undefined;
  const [, sign = '', digits = '', suffix = '', exponent] = match;
  const [whole = '', fraction = ''] = digits.split('.');
  const mantissa = BigInt(`${whole}${fraction}` || '0');
  const power = 9 - fraction.length + (exponent === undefined ? (decimal[suffix] ?? 0) : Number(exponent));
  const nano = scale(mantissa * 1024n ** BigInt(binary[suffix] ?? 0), power);
  return new Quantity(sign === '-' ? -nano : nano);
};

const unit = 1_000_000_000n;

const compare = (a: Quantity, b: Quantity): bigint => (a.nano < b.nano ? -1n : a.nano > b.nano ? 1n : 0n);

const toQuantity = (text: string): Quantity => {
  const quantity = parseQuantity(text);
  if (quantity !== undefined) return quantity;
  throw new Error("quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'");
};

const toInteger = (quantity: Quantity): bigint => {
  if (quantity.nano % unit === 0n) return quantity.nano / unit;
  throw new Error('cannot convert value to integer');
};

const registerQuantity = (environment: Environment): Environment =>
  environment
    .registerType('Quantity', Quantity)
    .registerFunction('quantity(string): Quantity', toQuantity)
    .registerFunction('isQuantity(string): bool', (text: string) => parseQuantity(text) !== undefined)
    .registerFunction('Quantity.sign(): int', (q: Quantity) => compare(q, new Quantity(0n)))
    .registerFunction('Quantity.isInteger(): bool', (q: Quantity) => q.nano % unit === 0n)
    .registerFunction('Quantity.asInteger(): int', toInteger)
    .registerFunction('Quantity.asApproximateFloat(): double', (q: Quantity) => Number(q.nano) / 1e9)
    .registerFunction('Quantity.compareTo(Quantity): int', compare)
    .registerFunction('Quantity.isLessThan(Quantity): bool', (a: Quantity, b: Quantity) => a.nano < b.nano)
    .registerFunction('Quantity.isGreaterThan(Quantity): bool', (a: Quantity, b: Quantity) => a.nano > b.nano)
    .registerFunction('Quantity.add(Quantity): Quantity', (a: Quantity, b: Quantity) => new Quantity(a.nano + b.nano))
    .registerFunction('Quantity.add(int): Quantity', (a: Quantity, b: bigint) => new Quantity(a.nano + b * unit))
    .registerFunction('Quantity.sub(Quantity): Quantity', (a: Quantity, b: Quantity) => new Quantity(a.nano - b.nano))
    .registerFunction('Quantity.sub(int): Quantity', (a: Quantity, b: bigint) => new Quantity(a.nano - b * unit))
    .registerOperator('Quantity == Quantity', (a: Quantity, b: Quantity) => a.nano === b.nano);

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
