// The OpenAPI v3 schema of a kind, in the form of a CustomResourceDefinition, also for our built-in kinds.

import type { Json } from './json.ts';

export interface ValidationRule {
  readonly rule: string;
  readonly message?: string;
  readonly messageExpression?: string;
  readonly reason?: string;
  readonly fieldPath?: string;
  readonly optionalOldSelf?: boolean;
}

export interface JsonSchema {
  readonly type?: string;
  readonly format?: string;
  readonly title?: string;
  readonly description?: string;
  readonly default?: Json;
  readonly nullable?: boolean;
  readonly enum?: readonly Json[];
  readonly pattern?: string;
  readonly minLength?: number;
  readonly maxLength?: number;
  readonly minimum?: number;
  readonly maximum?: number;
  readonly exclusiveMinimum?: boolean;
  readonly exclusiveMaximum?: boolean;
  readonly multipleOf?: number;
  readonly minItems?: number;
  readonly maxItems?: number;
  readonly uniqueItems?: boolean;
  readonly minProperties?: number;
  readonly maxProperties?: number;
  readonly required?: readonly string[];
  readonly properties?: Readonly<Record<string, JsonSchema>>;
  readonly additionalProperties?: JsonSchema | boolean;
  readonly items?: JsonSchema;
  readonly allOf?: readonly JsonSchema[];
  readonly anyOf?: readonly JsonSchema[];
  readonly oneOf?: readonly JsonSchema[];
  readonly not?: JsonSchema;
  readonly externalDocs?: Json;
  readonly example?: Json;
  readonly 'x-kubernetes-preserve-unknown-fields'?: boolean;
  readonly 'x-kubernetes-int-or-string'?: boolean;
  readonly 'x-kubernetes-embedded-resource'?: boolean;
  readonly 'x-kubernetes-list-type'?: string;
  readonly 'x-kubernetes-list-map-keys'?: readonly string[];
  readonly 'x-kubernetes-map-type'?: string;
  readonly 'x-kubernetes-validations'?: readonly ValidationRule[];
  /** Only built-in kinds: the key by which a strategic merge patch merges a list; empty for lists of scalars. */
  readonly 'x-kubernetes-patch-merge-key'?: string;
  /** Only built-in kinds: `merge`, `replace`, `retainKeys` or `merge,retainKeys`. */
  readonly 'x-kubernetes-patch-strategy'?: string;
  /** Only built-in kinds: the name of the API type, for OpenAPI documents and decoding errors. */
  readonly 'x-bullion-type'?: string;
}

/** The schema of a named property. Reads only own keys: a field may be named `constructor`. */
export const propertyOf = (schema: JsonSchema, name: string): JsonSchema | undefined =>
  schema.properties !== undefined && Object.hasOwn(schema.properties, name) ? schema.properties[name] : undefined;

/** The schema of map values; undefined for `additionalProperties: true` and for none. */
export const valuesOf = (schema: JsonSchema): JsonSchema | undefined =>
  typeof schema.additionalProperties === 'object' ? schema.additionalProperties : undefined;

/** The schema of the value under `name`, be it a property or a map value. */
export const childOf = (schema: JsonSchema | undefined, name: string): JsonSchema | undefined =>
  schema === undefined ? undefined : (propertyOf(schema, name) ?? valuesOf(schema));

export const preservesUnknown = (schema: JsonSchema): boolean =>
  schema['x-kubernetes-preserve-unknown-fields'] === true;
export const isEmbedded = (schema: JsonSchema): boolean => schema['x-kubernetes-embedded-resource'] === true;

const ruled = new WeakMap<JsonSchema, boolean>();

/** Whether the structure of the schema contains CEL rules anywhere. */
export const hasRules = (schema: JsonSchema): boolean => {
  const known = ruled.get(schema);
  if (known !== undefined) return known;
  const children = [...Object.values(schema.properties ?? {}), schema.items, valuesOf(schema), ...(schema.allOf ?? [])];
  const found =
    (schema['x-kubernetes-validations'] ?? []).length > 0 ||
    children.some((child) => child !== undefined && hasRules(child));
  ruled.set(schema, found);
  return found;
};
