// Drops the fields that are not in a structural schema, as an API server does before it stores a custom resource.

import { objectMetaSchema } from './builtin.ts';
import { isObject, isList, fromEntries, type Json, type JsonObject } from './json.ts';
import { childPath, indexPath } from './cause.ts';
import { isEmbedded, preservesUnknown, propertyOf, type JsonSchema } from './json-schema.ts';

export interface Pruned {
  readonly object: JsonObject;
  /** Paths of dropped fields (`spec.list[0].x`), sorted. */
  readonly unknown: readonly string[];
}

const metaFields = new Set(['apiVersion', 'kind', 'metadata']);

/** The current position and the dropped fields. */
interface Walk {
  readonly unknown: string[];
}

type Step = (value: Json, schema: JsonSchema | undefined, path: string, walk: Walk) => Json;

const pruneField = (
  schema: JsonSchema,
  [key, value]: readonly [string, Json],
  path: string,
  walk: Walk,
): readonly [string, Json] | undefined => {
  const at = childPath(path, key);
  if (isEmbedded(schema) && metaFields.has(key)) return [key, key === 'metadata' ? pruneMeta(value, at, walk) : value];
  const property = propertyOf(schema, key);
  if (property !== undefined) return [key, prune(value, property, at, walk)];
  if (schema.additionalProperties !== undefined && schema.additionalProperties !== false) {
    const values = schema.additionalProperties === true ? undefined : schema.additionalProperties;
    return [key, prune(value, values, at, walk)];
  }
  if (preservesUnknown(schema)) return [key, value];
  if (!metaFields.has(key) || path !== '') walk.unknown.push(at);
  return undefined;
};

/** Metadata is typed: empty fields are dropped, and fields that ObjectMeta does not have are unknown. */
const pruneMeta = (value: Json, path: string, walk: Walk): Json => {
  const pruned = prune(value, objectMetaSchema(), path, walk);
  return isObject(pruned) ? fromEntries(Object.entries(pruned).filter(([, child]) => !isEmpty(child))) : pruned;
};

const isEmpty = (value: Json): boolean =>
  value === null || value === '' || value === 0 || (typeof value === 'object' && Object.keys(value).length === 0);

const pruneItems = (items: readonly Json[], step: Step, schema: JsonSchema | undefined, at: [string, Walk]): Json =>
  items.map((item, index) => step(item, schema, indexPath(at[0], index), at[1]));

const dropAll = (object: JsonObject, path: string, walk: Walk): JsonObject => {
  for (const key of Object.keys(object)) walk.unknown.push(childPath(path, key));
  return {};
};

const prune: Step = (value, schema, path, walk) => {
  if (schema !== undefined && preservesUnknown(schema)) return pruneKnown(value, schema, path, walk);
  if (isList(value)) return pruneItems(value, prune, schema?.items, [path, walk]);
  if (!isObject(value)) return value;
  if (schema === undefined) return dropAll(value, path, walk);
  return pruneFields(value, schema, path, walk);
};

/** Below preserve-unknown-fields only specified fields are pruned. */
const pruneKnown: Step = (value, schema, path, walk) => {
  if (schema === undefined) return value;
  if (isList(value)) return pruneItems(value, pruneKnown, schema.items, [path, walk]);
  if (!isObject(value)) return value;
  return pruneFields(value, { ...schema, 'x-kubernetes-preserve-unknown-fields': true }, path, walk);
};

const pruneFields = (object: JsonObject, schema: JsonSchema, path: string, walk: Walk): JsonObject =>
  fromEntries(
    Object.entries(object)
      .map((entry) => pruneField(schema, entry, path, walk))
      .filter((entry) => entry !== undefined),
  );

/**
 * The object without fields that its schema does not specify. apiVersion, kind and metadata of the object itself and of
 * embedded resources are kept, metadata with the fields of all objects.
 */
export const pruneObject = (schema: JsonSchema, object: JsonObject): Pruned => {
  const walk: Walk = { unknown: [] };
  const pruned = pruneFields(object, { ...schema, 'x-kubernetes-embedded-resource': true }, '', walk);
  return { object: pruned, unknown: walk.unknown.toSorted() };
};

/** A value without fields that its schema does not specify, at any place. */
export const pruneValue = (schema: JsonSchema, value: Json): Json => prune(value, schema, '', { unknown: [] });
