// The annotation of client-side `kubectl apply`, and its meaning for server-side apply: fields that kubectl
// applied before and that were not changed since may be taken over without a conflict. Called by apply.ts.
import {
  get,
  isObject,
  stableJson,
  withKey,
  withoutKey,
  type JsonObject,
  fromEntries,
  type Json,
} from '../schema/json.ts';
import { differenceOf, unionOf, type FieldSet } from './field-set.ts';
import { compareFields, fieldsOf } from './typed-fields.ts';
import type { Shape } from './typed-value.ts';
import { typeNameOf } from '../schema/builtin.ts';
import { valueStructs } from '../schema/builtin-tables.ts';
import type { JsonSchema } from '../schema/json-schema.ts';

const annotation = 'kubectl.kubernetes.io/last-applied-configuration';
/** The server stores no annotation larger than the limit for all annotations of an object. */
const maxBytes = 256 * 1024;

const annotationsOf = (object: JsonObject): JsonObject => {
  const metadata = get(object, 'metadata');
  const annotations = isObject(metadata) ? get(metadata, 'annotations') : undefined;
  return isObject(annotations) ? annotations : {};
};

const parse = (text: string): JsonObject | undefined => {
  try {
    const value: unknown = JSON.parse(text);
    return isObject(value) ? value : undefined;
  } catch {
    return undefined;
  }
};

const lastAppliedOf = (object: JsonObject): string => {
  const text = get(annotationsOf(object), annotation);
  return typeof text === 'string' ? text : '';
};

/** Fields in the annotation whose values the current object still has; undefined when there is no usable annotation. */
export const allowedByLastApplied = (shape: Shape, apiVersion: string, live: JsonObject): FieldSet | undefined => {
  const last = parse(lastAppliedOf(live));
  if (last === undefined || get(last, 'apiVersion') !== apiVersion) return undefined;
  const { added, modified, removed } = compareFields(shape, last, live);
  return differenceOf(fieldsOf(shape, last), unionOf(unionOf(modified, added), removed));
};

/** The object with its annotation, if it has one, updated to what was applied now. */
export const withLastApplied = (object: JsonObject, config: JsonObject): JsonObject => {
  if (lastAppliedOf(object) === '') return object;
  const metadata = get(config, 'metadata');
  const annotations = withoutKey(annotationsOf(config), annotation);
  const stated =
    isObject(metadata) && Object.hasOwn(metadata, 'annotations')
      ? withKey(config, 'metadata', withKey(metadata, 'annotations', annotations))
      : config;
  const text = `${stableJson(stated)}\n`;
  const own = get(object, 'metadata');
  if (!isObject(own)) return object;
  const kept = annotationsOf(object);
  const next = Buffer.byteLength(text) > maxBytes ? withKey(kept, annotation, '') : withKey(kept, annotation, text);
  return withKey(object, 'metadata', withKey(own, 'annotations', next));
};

/** An object of a kind without any values. A created object owns its differences to that. */
const alwaysThere = new Set(['metadata', 'spec', 'status']);

const zeros: Readonly<Record<string, Json>> = { string: '', integer: 0, number: 0, boolean: false };

const isStruct = (schema: JsonSchema): boolean => schema.type === 'object' && schema['x-bullion-type'] !== undefined;

/** A required field is written even when it is empty; lists and maps then are null. */
const zeroField = (parent: string, name: string, schema: JsonSchema, isRequired: boolean): Json | undefined => {
  if (isStruct(schema)) {
    const isThere = isRequired || alwaysThere.has(name) || valueStructs.has(`${parent}.${name}`);
    return isThere ? zeroStruct(schema) : undefined;
  }
  return isRequired ? (zeros[schema.type ?? ''] ?? null) : undefined;
};

const zeroStruct = (schema: JsonSchema): JsonObject => {
  const parent = typeNameOf(schema['x-bullion-type'] ?? '');
  const required = new Set(schema.required ?? []);
  return fromEntries(
    Object.entries(schema.properties ?? {}).flatMap(([name, child]) => {
      const value = zeroField(parent, name, child, required.has(name));
      return value === undefined ? [] : [[name, value] as const];
    }),
  );
};

/** The empty object of a kind. Custom kinds have only their type; built-in ones their empty structures. */
export const zeroObject = (schema: JsonSchema, object: JsonObject): JsonObject => ({
  ...(isStruct(schema) ? zeroStruct(schema) : {}),
  apiVersion: object['apiVersion'] ?? null,
  kind: object['kind'] ?? null,
});
