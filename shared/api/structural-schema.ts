// Converts a zod type to the structural OpenAPI v3 schema of a CustomResourceDefinition. Called by infra/generate; a type without a structural
// form throws with the path of the field.
import { z } from 'zod';
import type { CelRule } from '#shared/api/kind.ts';

/** The subset of JSONSchemaProps that is generated. */
export interface StructuralSchema {
  readonly type?: 'object' | 'array' | 'string' | 'integer' | 'number' | 'boolean';
  readonly format?: string;
  readonly description?: string;
  readonly default?: unknown;
  readonly example?: unknown;
  readonly enum?: readonly unknown[];
  readonly nullable?: boolean;
  readonly minimum?: number;
  readonly maximum?: number;
  readonly minLength?: number;
  readonly maxLength?: number;
  readonly pattern?: string;
  readonly minItems?: number;
  readonly maxItems?: number;
  readonly minProperties?: number;
  readonly maxProperties?: number;
  readonly required?: readonly string[];
  readonly properties?: Readonly<Record<string, StructuralSchema>>;
  readonly additionalProperties?: StructuralSchema;
  readonly items?: StructuralSchema;
  readonly anyOf?: readonly { readonly type: string }[];
  readonly 'x-kubernetes-int-or-string'?: true;
  readonly 'x-kubernetes-preserve-unknown-fields'?: true;
  readonly 'x-kubernetes-embedded-resource'?: true;
  readonly 'x-kubernetes-list-type'?: 'atomic' | 'set' | 'map';
  readonly 'x-kubernetes-list-map-keys'?: readonly string[];
  readonly 'x-kubernetes-map-type'?: 'atomic' | 'granular';
  readonly 'x-kubernetes-validations'?: readonly CelRule[];
}

type Json = Readonly<Record<string, unknown>>;

const isJson = (value: unknown): value is Json => typeof value === 'object' && value !== null && !Array.isArray(value);

/** Copied unchanged. Any other keyword that is not handled below is an error in the schema. */
const passedOn = [
  'description',
  'default',
  'example',
  'nullable',
  'minLength',
  'maxLength',
  'minItems',
  'maxItems',
  'minProperties',
  'maxProperties',
  'x-kubernetes-preserve-unknown-fields',
  'x-kubernetes-embedded-resource',
  'x-kubernetes-list-type',
  'x-kubernetes-list-map-keys',
  'x-kubernetes-map-type',
  'x-kubernetes-validations',
];
const shaped = [
  'type',
  'format',
  'enum',
  'pattern',
  'minimum',
  'maximum',
  'required',
  'properties',
  'additionalProperties',
  'items',
  'anyOf',
  'oneOf',
  'x-kubernetes-int-or-string',
];
const understood = new Set([...passedOn, ...shaped]);

class NotStructural extends Error {
  override readonly name = 'NotStructural';
  constructor(path: string, problem: string) {
    super(`${path === '' ? '(root)' : path}: ${problem}`);
  }
}

/** Throws NotStructural with the field if the type has no structural form. */
export const toStructuralSchema = (type: z.ZodType): StructuralSchema => {
  const json = z.toJSONSchema(type, { target: 'openapi-3.0', io: 'input', reused: 'inline', cycles: 'throw' });
  return convert(json as Json, '');
};

const convert = (json: Json, path: string): StructuralSchema => {
  const unknown = Object.keys(json).filter((key) => !understood.has(key));
  if (unknown.length > 0) throw new NotStructural(path, `a structural schema cannot have ${unknown.join(', ')}`);
  return { ...shapeOf(json, path), ...pick(json, passedOn) };
};

const shapeOf = (json: Json, path: string): StructuralSchema => {
  const variants = json['anyOf'] ?? json['oneOf'];
  if (json['x-kubernetes-int-or-string'] === true) return intOrString(json);
  if (Array.isArray(variants)) return unionShape(variants.filter(isJson), path);
  switch (json['type']) {
    case 'object':
      return objectShape(json, path);
    case 'array':
      return { type: 'array', items: convert(asJson(json['items']), `${path}[]`) };
    case 'string':
      return stringShape(json);
    case 'integer':
      return integerShape(json);
    case 'number':
      return { type: 'number', ...pick(json, ['minimum', 'maximum']) };
    case 'boolean':
      return { type: 'boolean' };
    case undefined:
      return { 'x-kubernetes-preserve-unknown-fields': true };
    default:
      throw new NotStructural(path, `type ${String(json['type'])} has no structural form`);
  }
};

const intOrString = (json: Json): StructuralSchema => ({
  anyOf: [{ type: 'integer' }, { type: 'string' }],
  ...pick(json, ['pattern']),
  'x-kubernetes-int-or-string': true,
});

/** Only unions of scalars: number or string, or strings of several enums. Objects use optional fields and a CEL rule instead. */
const unionShape = (variants: readonly Json[], path: string): StructuralSchema => {
  const types = new Set(variants.map((variant) => variant['type']));
  if (types.size === 2 && types.has('string') && (types.has('integer') || types.has('number'))) {
    const text = variants.find((variant) => variant['type'] === 'string') ?? {};
    return intOrString(text);
  }
  const enums = variants.map((variant) => variant['enum']);
  if (types.size === 1 && types.has('string') && enums.every(Array.isArray)) {
    return { type: 'string', enum: [...new Set(enums.flat())] };
  }
  throw new NotStructural(path, 'a union needs flat optional fields and a CEL rule instead');
};

const objectShape = (json: Json, path: string): StructuralSchema => {
  const properties = Object.entries(asJson(json['properties']));
  const rest = json['additionalProperties'];
  const open = isJson(rest) && Object.keys(rest).length === 0;
  if (properties.length === 0 && isJson(rest) && !open) {
    return { type: 'object', additionalProperties: convert(rest, `${path}.*`) };
  }
  if (isJson(rest) && !open) throw new NotStructural(path, 'named fields and a typed rest exclude each other');
  const converted = properties.map(([name, value]) => [name, convert(asJson(value), `${path}.${name}`)] as const);
  return {
    type: 'object',
    ...(converted.length === 0 ? {} : { properties: Object.fromEntries(converted) }),
    ...requiredOf(json),
    ...(open ? { 'x-kubernetes-preserve-unknown-fields': true } : {}),
  };
};

const requiredOf = (json: Json): Pick<StructuralSchema, 'required'> => {
  const required = json['required'];
  return Array.isArray(required) && required.length > 0 ? { required: required.map(String) } : {};
};

/** zod adds patterns for formats; the API server validates `format`, and an additional pattern could only differ. */
const stringShape = (json: Json): StructuralSchema => ({
  type: 'string',
  ...(json['format'] === undefined ? pick(json, ['pattern']) : pick(json, ['format'])),
  ...pick(json, ['enum']),
});

const int32 = { minimum: -(2 ** 31), maximum: 2 ** 31 - 1 };

/** zod limits every integer to the range of a double or an int32. Those limits belong to the format, not to the field. */
const integerShape = (json: Json): StructuralSchema => {
  const { minimum, maximum } = json;
  const small = minimum === int32.minimum || maximum === int32.maximum;
  const isOwn = (bound: unknown, limit: number): boolean =>
    typeof bound === 'number' && Math.abs(bound) < Number.MAX_SAFE_INTEGER && bound !== limit;
  return {
    type: 'integer',
    format: small ? 'int32' : 'int64',
    ...(isOwn(minimum, int32.minimum) ? { minimum: Number(minimum) } : {}),
    ...(isOwn(maximum, int32.maximum) ? { maximum: Number(maximum) } : {}),
    ...pick(json, ['enum']),
  };
};

const asJson = (value: unknown): Json => (isJson(value) ? value : {});

const pick = (json: Json, keys: readonly string[]): Record<string, never> =>
  Object.fromEntries(keys.filter((key) => json[key] !== undefined).map((key) => [key, json[key]])) as Record<
    string,
    never
  >;
