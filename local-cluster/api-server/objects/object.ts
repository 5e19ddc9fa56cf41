// The form of any Kubernetes object in the API server: everything except the metadata is unknown without a schema.
import type { OwnerReference } from '#shared/api/object.ts';
import type { JsonObject } from '../schema/json.ts';

/** A JSON object with unknown content. */
export type Fields = Record<string, unknown>;

export interface ManagedFieldsEntry {
  manager?: string;
  operation?: string;
  apiVersion?: string;
  time?: string;
  fieldsType?: string;
  fieldsV1?: Fields;
  subresource?: string;
}

export interface Metadata extends Fields {
  name?: string;
  generateName?: string;
  namespace?: string;
  uid?: string;
  resourceVersion?: string;
  generation?: number;
  creationTimestamp?: string | null;
  deletionTimestamp?: string;
  deletionGracePeriodSeconds?: number;
  labels?: Record<string, string>;
  annotations?: Record<string, string>;
  finalizers?: string[];
  ownerReferences?: OwnerReference[];
  managedFields?: ManagedFieldsEntry[];
}

/** An object in a request: mutable, because a request builds its own copy step by step. */
export interface ApiObject extends Fields {
  apiVersion: string;
  kind: string;
  metadata: Metadata;
}

/** The object as JSON: it came from a request or the store, and every step of a request leaves JSON in it. */
export const toJson = (object: ApiObject): JsonObject & ApiObject => object as JsonObject & ApiObject;

/** JSON of the form of an object, as its schema requires. */
export const fromJson = (json: JsonObject): ApiObject => json as JsonObject & ApiObject;

export const isFields = (value: unknown): value is Fields =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

/** The object under `key`, or an empty one that is not attached. */
export const fieldsAt = (object: Fields, key: string): Fields => {
  const value = object[key];
  return isFields(value) ? value : {};
};

/** The object under `key`, created when absent. */
export const ensureFields = (object: Fields, key: string): Fields => {
  const value = object[key];
  if (isFields(value)) return value;
  const made: Fields = {};
  object[key] = made;
  return made;
};

/** The elements under `key` that are objects. */
export const listAt = (object: Fields, key: string): Fields[] => {
  const value = object[key];
  return Array.isArray(value) ? value.filter(isFields) : [];
};

export const textAt = (object: Fields, key: string): string | undefined => {
  const value = object[key];
  return typeof value === 'string' ? value : undefined;
};

export const numberAt = (object: Fields, key: string): number | undefined => {
  const value = object[key];
  return typeof value === 'number' ? value : undefined;
};

/** Any value as text: scalars unchanged, nothing as `fallback`, the rest as JSON. */
export const toText = (value: unknown, fallback = ''): string => {
  if (value === undefined || value === null) return fallback;
  return typeof value === 'object' ? JSON.stringify(value) : String(value as string | number | boolean);
};

/** The value at a dotted path, e.g. `status.phase`. */
export const valueAt = (object: Fields, path: string): unknown =>
  path.split('.').reduce<unknown>((value, key) => (isFields(value) ? value[key] : undefined), object);

/** A shallow copy without the named keys. */
export const omit = (object: Fields, ...keys: readonly string[]): Fields =>
  Object.fromEntries(Object.entries(object).filter(([key]) => !keys.includes(key)));

const goOrder = [
  'name',
  'generateName',
  'namespace',
  'selfLink',
  'uid',
  'resourceVersion',
  'generation',
  'creationTimestamp',
  'deletionTimestamp',
  'deletionGracePeriodSeconds',
  'labels',
  'annotations',
  'ownerReferences',
  'finalizers',
  'managedFields',
];

/** Metadata with its fields in the order of Kubernetes' own type. */
export const inGoOrder = (metadata: Fields): Fields =>
  Object.fromEntries(Object.entries(metadata).toSorted(([a], [b]) => goOrder.indexOf(a) - goOrder.indexOf(b)));

/** Sets `key` unless it already has a value: how a default is set. */
export const setDefault = (object: Fields, key: string, value: unknown): void => {
  if (object[key] === undefined || object[key] === null) object[key] = value;
};

/** Copies or clears one field so that `to[key]` equals `from[key]`. */
export const copyField = (from: Fields, to: Fields, key: string): void => {
  if (from[key] === undefined) delete to[key];
  else to[key] = from[key];
};
