// Decodes a request body into an object of the kind in the URL: version and kind validated, unknown fields dropped (and reported according
// to fieldValidation), defaults set.
import type { FieldValidation } from '../handlers/options.ts';
import { type Resource, groupVersion } from '../registry/resource.ts';
import { objectMetaSchema } from '../schema/builtin.ts';
import { type JsonSchema, childOf, isEmbedded, preservesUnknown, propertyOf, valuesOf } from '../schema/json-schema.ts';
import { type JsonObject, goQuote, goJson, type Json } from '../schema/json.ts';
import { applyDefaults, pruneObject } from '../schema/structural.ts';
import { badRequest, invalid } from '../status/status.ts';
import { findTypeFault } from './type-fault.ts';
import { type ApiObject, type Fields, isFields, toText } from './object.ts';

/** The expected kind of a body: the resource's own kind, or that of a subresource. */
export interface Expected {
  readonly group: string;
  readonly version: string;
  readonly kind: string;
}

export interface DecodeOptions {
  readonly fieldValidation: FieldValidation;
  readonly warn: (text: string) => void;
  /** Errors found while the body was parsed (duplicate fields, unknown fields of a patch). */
  readonly strictErrors?: readonly string[];
  /** Set for the result of a patch: its text, as shown in an error. */
  readonly patched?: string;
}

const isEmpty = (value: unknown): boolean => value === undefined || value === null || value === '';

const checkNamed = (body: Fields): void => {
  for (const [field, shown] of [
    ['kind', 'Kind'],
    ['apiVersion', 'apiVersion'],
  ] as const) {
    if (isEmpty(body[field])) throw badRequest(`Object '${shown}' is missing in '${JSON.stringify(body)}'`);
  }
};

/** The Go package of the server's internal form of a kind. */
const packageOf = (group: string): string => (group === '' ? 'core' : (group.split('.')[0] ?? group));

const checkKind = (body: Fields, expected: Expected): void => {
  const { apiVersion, kind } = body;
  const wanted = groupVersion(expected.group, expected.version);
  if (!isEmpty(apiVersion) && apiVersion !== wanted) {
    throw badRequest(
      `the API version in the data (${toText(apiVersion)}) does not match the expected API version (${wanted})`,
    );
  }
  if (isEmpty(kind) || kind === expected.kind) return;
  throw badRequest(
    `${toText(kind)} in version "${expected.version}" cannot be handled as a ${expected.kind}: converting (${toText(apiVersion)}.${toText(kind)}) to (${packageOf(expected.group)}.${expected.kind}): unknown conversion`,
  );
};

const invalidPatch = (patched: string, why: string) =>
  invalid({ group: '', kind: '' }, '', [
    {
      reason: 'FieldValueInvalid',
      field: 'patch',
      message: `Invalid value: ${goQuote(patched)}: ${why}`,
    },
  ]);

const strictErrors = (unknown: readonly string[], options: DecodeOptions): string[] => [
  ...(options.strictErrors ?? []),
  ...unknown.map((path) => `unknown field "${path}"`),
];

/** Throws a 400 (for a patch: 422), adds warnings, or does nothing. */
export const reportStrictErrors = (faults: readonly string[], expected: Expected, options: DecodeOptions): void => {
  if (faults.length === 0 || options.fieldValidation === 'Ignore') return;
  if (options.fieldValidation === 'Warn') {
    faults.forEach(options.warn);
    return;
  }
  if (options.patched !== undefined) throw invalidPatch(options.patched, `strict decoding error: ${faults.join(', ')}`);
  throw badRequest(
    `${expected.kind} in version "${expected.version}" cannot be handled as a ${expected.kind}: strict decoding error: ${faults.join(', ')}`,
  );
};

/** Fields of metadata are the same for all kinds, including those whose schema does not describe them. */
const withMetadata = (schema: JsonSchema): JsonSchema => ({
  ...schema,
  properties: {
    apiVersion: { type: 'string' },
    kind: { type: 'string' },
    ...schema.properties,
    metadata: objectMetaSchema(),
  },
});

const schemas = new WeakMap<JsonSchema, JsonSchema>();

/** The schema of a resource including its metadata; cached, since each write needs it. */
export const fullSchema = (schema: JsonSchema): JsonSchema => {
  const known = schemas.get(schema);
  if (known !== undefined) return known;
  const full = withMetadata(schema);
  schemas.set(schema, full);
  return full;
};

const metadataOnly: JsonSchema = { type: 'object', properties: { metadata: {} } };

/** Throws when a value has a wrong JSON type: a 400, or for a patch a 422. */
const checkTypes = (body: Fields, schema: JsonSchema, expected: Expected, options: DecodeOptions): void => {
  const fault = findTypeFault(schema, body, expected.kind);
  if (fault === undefined) return;
  const text = fault.startsWith('illegal') ? fault : `json: cannot unmarshal ${fault}`;
  throw options.patched === undefined ? cannotHandle(expected, text) : invalidPatch(options.patched, text);
};

const cannotHandle = (expected: Expected, why: string) =>
  badRequest(`${expected.kind} in version "${expected.version}" cannot be handled as a ${expected.kind}: ${why}`);

/** A value of the kind with known fields and correct types in the metadata (for built-in kinds: in all of it). */
export const decodeAs = (raw: unknown, expected: Expected, schema: JsonSchema, options: DecodeOptions): Fields => {
  if (!isFields(raw)) throw badRequest(`the body must be an object of kind ${expected.kind}`);
  checkKind(raw, expected);
  checkTypes(raw, schema, expected, options);
  const unknown = findUnknownFields(schema, raw);
  reportStrictErrors(strictErrors(unknown, options), expected, options);
  return pruneObject(schema, raw as JsonObject).object as Fields;
};

const decodeCustom = (raw: Fields, resource: Resource, options: DecodeOptions): Fields => {
  checkNamed(raw);
  checkKind(raw, resource);
  const schema = fullSchema(resource.schema() ?? { type: 'object', 'x-kubernetes-preserve-unknown-fields': true });
  const metadataSchema = { ...metadataOnly, properties: { metadata: objectMetaSchema() } };
  checkTypes({ metadata: raw['metadata'] }, metadataSchema, resource, options);
  const fault = findEmbeddedFault(resource.schema(), raw);
  if (fault !== undefined) throw cannotHandle(resource, fault);
  const { object, unknown } = pruneObject(schema, raw as JsonObject);
  reportStrictErrors(strictErrors(unknown, options), resource, options);
  return applyDefaults(resource.schema() ?? {}, object) as Fields;
};

/** Nulls in the metadata and in built-in kinds mean that the field is absent. */
const dropNulls = (object: Fields): void => {
  for (const [key, value] of Object.entries(object)) {
    if (value === null) delete object[key];
    else if (isFields(value)) dropNulls(value);
    else if (Array.isArray(value)) value.filter(isFields).forEach(dropNulls);
  }
};

const decodeBuiltin = (raw: Fields, resource: Resource, options: DecodeOptions): Fields => {
  const schema = resource.schema();
  const object =
    schema === undefined ? structuredClone(raw) : structuredClone(decodeAs(raw, resource, schema, options));
  dropNulls(object);
  return object;
};

/** The object sent by a client, ready to be written. Throws a 400 that names the error. */
export const decodeObject = (raw: unknown, resource: Resource, options: DecodeOptions): ApiObject => {
  if (!isFields(raw)) throw badRequest(`the body must be an object of kind ${resource.kind}`);
  const isCustom = resource.custom !== undefined;
  const decoded = isCustom
    ? structuredClone(decodeCustom(raw, resource, options))
    : decodeBuiltin(raw, resource, options);
  const metadata = isFields(decoded['metadata']) ? decoded['metadata'] : {};
  dropNulls(metadata);
  const { apiVersion: _, kind: __, metadata: ___, ...rest } = decoded;
  const object: ApiObject = {
    apiVersion: groupVersion(resource.group, resource.version),
    kind: resource.kind,
    metadata,
    ...rest,
  };
  resource.strategy.defaults?.(object);
  return object;
};

/** Finds embedded resources in a custom resource whose metadata is not an object: such a body cannot be decoded. */
const jsonType = (value: unknown): string => {
  if (Array.isArray(value)) return 'array';
  return typeof value === 'boolean' ? 'bool' : typeof value;
};

const ownFault = (schema: JsonSchema, metadata: unknown, path: string): string | undefined => {
  if (!isEmbedded(schema) || metadata === undefined || metadata === null || isFields(metadata)) return undefined;
  const shown = goJson(metadata as Json);
  return `${path}.metadata: Invalid value: ${shown}: json: cannot unmarshal ${jsonType(metadata)} into Go value of type v1.ObjectMeta`;
};

/** The first error, with the message of kube-apiserver; undefined when there is none. */
const findEmbeddedFault = (schema: JsonSchema | undefined, value: unknown, path = ''): string | undefined => {
  if (schema === undefined) return undefined;
  if (Array.isArray(value)) {
    const faults = value.map((item, index) => findEmbeddedFault(schema.items, item, `${path}[${index}]`));
    return faults.find((fault) => fault !== undefined);
  }
  if (!isFields(value)) return undefined;
  const own = ownFault(schema, value['metadata'], path);
  if (own !== undefined) return own;
  const faults = Object.entries(value).map(([key, item]) =>
    findEmbeddedFault(childOf(schema, key), item, path === '' ? key : `${path}.${key}`),
  );
  return faults.find((fault) => fault !== undefined);
};

/** Lists the unknown fields of a built-in kind, in the order of the body, like Go's strict decoder. */
const childPath = (path: string, key: string): string => (path === '' ? key : `${path}.${key}`);

/** Paths such as `spec.containers[0].imagee`. */
export const findUnknownFields = (schema: JsonSchema, value: unknown, path = ''): string[] => {
  if (Array.isArray(value)) {
    const { items } = schema;
    return items === undefined
      ? []
      : value.flatMap((item, index) => findUnknownFields(items, item, `${path}[${index}]`));
  }
  if (!isFields(value) || preservesUnknown(schema)) return [];
  const values = valuesOf(schema);
  return Object.entries(value).flatMap(([key, item]) => {
    const child = propertyOf(schema, key) ?? values;
    if (child !== undefined) return findUnknownFields(child, item, childPath(path, key));
    return schema.properties === undefined ? [] : [childPath(path, key)];
  });
};
