// Schemas of the built-in kinds, created on demand from the models of the Kubernetes client and our tables. Called by the
// API server for decoding, patches, server-side apply and OpenAPI documents.
import * as models from '@kubernetes/client-node/dist/gen/models/all.js';
import {
  atomicMaps,
  granularMaps,
  keyDefaults,
  lists,
  qualifiedModels,
  quantities,
  strategies,
  type ListFacts,
} from './builtin-tables.ts';
import type { JsonSchema } from './json-schema.ts';
import { readFileSync } from 'node:fs';

interface Attribute {
  readonly name: string;
  readonly baseName: string;
  readonly type: string;
  readonly format: string;
}

type Mutable<T> = { -readonly [K in keyof T]: T[K] };

const classes: ReadonlyMap<string, unknown> = new Map(Object.entries(models));

const attributesOf = (model: string): readonly Attribute[] | undefined => {
  const found = classes.get(model);
  if (typeof found !== 'function' || !('attributeTypeMap' in found)) return undefined;
  return found.attributeTypeMap as readonly Attribute[];
};

/** The names of API types: `PodSpec` for `V1PodSpec`, `Event` for `CoreV1Event`. */
export const typeNameOf = (model: string): string =>
  model.replace(/^(?:[A-Z][a-z]+)?V\d+(?:(?:alpha|beta)\d+)?(?=[A-Z])/, '');

const quantity: JsonSchema = { type: 'string', 'x-bullion-type': 'Quantity' };

const scalars: Readonly<Record<string, JsonSchema>> = {
  string: { type: 'string' },
  boolean: { type: 'boolean' },
  Date: { type: 'string', format: 'date-time' },
  V1MicroTime: { type: 'string', format: 'date-time' },
  IntOrString: { type: 'string', format: 'int-or-string', 'x-kubernetes-int-or-string': true },
  any: { 'x-kubernetes-preserve-unknown-fields': true },
  object: { type: 'object', 'x-kubernetes-preserve-unknown-fields': true },
};

const fieldsV1: JsonSchema = { ...scalars['object'], 'x-bullion-type': 'FieldsV1' };

const metaDescription =
  "Standard object's metadata. More info: https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md#metadata";

const numberOf = (format: string): JsonSchema => ({
  type: format === 'double' ? 'number' : 'integer',
  ...(format === '' ? {} : { format }),
});

/** The schema of a type in the notation of the models: `Array<V1Container>`, `{ [key: string]: string; }`. */
const typeSchema = (type: string, format: string, isQuantity: boolean): JsonSchema => {
  const item = /^(?:Array|Set)<(.*)>$/.exec(type)?.[1];
  if (item !== undefined) return { type: 'array', items: typeSchema(item, format, isQuantity) };
  const value = /^\{ \[key: string\]: (.*); \}$/.exec(type)?.[1];
  if (value !== undefined) return { type: 'object', additionalProperties: typeSchema(value, format, isQuantity) };
  if (type === 'number') return numberOf(format);
  if (type === 'string') return isQuantity ? quantity : { type, ...(format === '' ? {} : { format }) };
  return scalars[type] ?? modelSchema(type);
};

const listExtensions = (facts: ListFacts | undefined): JsonSchema => ({
  'x-kubernetes-list-type': facts?.type ?? 'atomic',
  ...(facts?.keys === undefined ? {} : { 'x-kubernetes-list-map-keys': facts.keys }),
  ...(facts?.mergeKey === undefined ? {} : { 'x-kubernetes-patch-merge-key': facts.mergeKey }),
  ...(facts?.strategy === undefined ? {} : { 'x-kubernetes-patch-strategy': facts.strategy }),
});

const mapExtensions = (key: string, schema: JsonSchema): JsonSchema => {
  const strategy = strategies[key];
  const isAtomic = atomicMaps.has(key) || (schema['x-kubernetes-map-type'] === 'atomic' && !granularMaps.has(key));
  return {
    ...(isAtomic ? { 'x-kubernetes-map-type': 'atomic' } : {}),
    ...(granularMaps.has(key) ? { 'x-kubernetes-map-type': 'granular' } : {}),
    ...(strategy === undefined ? {} : { 'x-kubernetes-patch-strategy': strategy }),
  };
};

/** A copy that keeps lazy properties lazy. */
const extend = (schema: JsonSchema, extra: JsonSchema): JsonSchema =>
  Object.defineProperties(
    {},
    { ...Object.getOwnPropertyDescriptors(schema), ...Object.getOwnPropertyDescriptors(extra) },
  );

const fieldSchema = (typeName: string, attribute: Attribute, description: string): JsonSchema => {
  const key = `${typeName}.${attribute.baseName}`;
  const schema =
    key === 'ManagedFieldsEntry.fieldsV1'
      ? fieldsV1
      : typeSchema(attribute.type, attribute.format, quantities.has(key));
  const extensions = schema.type === 'array' ? listExtensions(lists[key]) : mapExtensions(key, schema);
  const standard = keyDefaults[key];
  return extend(schema, {
    ...extensions,
    ...(description === '' ? {} : { description }),
    ...(standard === undefined ? {} : { default: standard }),
  });
};

/** The client lacks the description of a field whose type is a model; that of metadata is always the same. */
const descriptionOf = (attribute: Attribute, text: ModelText): string =>
  attribute.type === 'V1ObjectMeta' ? metaDescription : (text.fields.get(attribute.name)?.description ?? '');

const fillModel = (model: string, attributes: readonly Attribute[]): Pick<JsonSchema, 'properties' | 'required'> => {
  const text = readModelText(model);
  const typeName = typeNameOf(model);
  const required = attributes.filter(({ name }) => text.fields.get(name)?.required === true);
  return {
    properties: Object.fromEntries(
      attributes.map((attribute) => [
        attribute.baseName,
        fieldSchema(typeName, attribute, descriptionOf(attribute, text)),
      ]),
    ),
    ...(required.length === 0 ? {} : { required: required.map(({ baseName }) => baseName) }),
  };
};

const once = <T>(make: () => T): (() => T) => {
  let made: { readonly value: T } | undefined;
  return () => (made ??= { value: make() }).value;
};

const cache = new Map<string, JsonSchema>();

/** The schema of a model. Its fields are created on first access: models may be recursive. */
const modelSchema = (model: string): JsonSchema => {
  const known = cache.get(model);
  if (known !== undefined) return known;
  const attributes = attributesOf(model);
  const typeName = typeNameOf(model);
  const schema: Mutable<JsonSchema> = { type: 'object', 'x-bullion-type': model };
  cache.set(model, schema);
  if (attributes === undefined) return Object.assign(schema, { 'x-kubernetes-preserve-unknown-fields': true });
  const filled = once(() => fillModel(model, attributes));
  Object.defineProperties(schema, {
    description: { enumerable: true, get: once(() => readModelText(model).description) },
    properties: { enumerable: true, get: () => filled().properties },
    required: { enumerable: true, get: () => filled().required },
  });
  if (atomicMaps.has(typeName)) schema['x-kubernetes-map-type'] = 'atomic';
  return schema;
};

const capital = (text: string): string => text.charAt(0).toUpperCase() + text.slice(1);

/** The schema of a built-in kind (`''`, `v1`, `Pod`), also of its List; undefined for unknown kinds. */
export const builtinSchema = (group: string, version: string, kind: string): JsonSchema | undefined => {
  const model = qualifiedModels[`${group}/${version}/${kind}`] ?? `${capital(version)}${kind}`;
  return attributesOf(model) === undefined ? undefined : modelSchema(model);
};

/** The schema of the metadata that every kind has. */
export const objectMetaSchema = (): JsonSchema => modelSchema('V1ObjectMeta');

/**
 * Descriptions and required fields of the built-in kinds, read once from the type declarations that are published with the models of the
 * Kubernetes client.
 */
interface ModelText {
  readonly description: string;
  /** By the field's name in the model. */
  readonly fields: ReadonlyMap<string, { readonly description: string; readonly required: boolean }>;
}

const unescape = (text: string): string => text.trim().replaceAll(/\\(['"])/g, '$1');

const fieldPattern = /(?:\/\*\*\n\s*\* (?<text>.*)\n\s*\*\/\n\s*)?'(?<name>[^']+)'(?<optional>\?)?: /g;

const classPattern = /\/\*\*\n\* (?<text>.*)\n\*\/\nexport declare class/;

const parse = (source: string): ModelText => ({
  description: unescape(classPattern.exec(source)?.groups?.['text'] ?? ''),
  fields: new Map(
    Array.from(source.matchAll(fieldPattern), ({ groups = {} }) => [
      groups['name'] ?? '',
      { description: unescape(groups['text'] ?? ''), required: groups['optional'] === undefined },
    ]),
  ),
});

const modelFiles = new URL('dist/gen/models/', new URL('../', import.meta.resolve('@kubernetes/client-node')));

/** The descriptions of one model, such as `V1PodSpec`. Throws when the client has no such model. */
const readModelText = (model: string): ModelText => parse(readFileSync(new URL(`${model}.d.ts`, modelFiles), 'utf8'));
