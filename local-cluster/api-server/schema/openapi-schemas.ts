// Converts schemas into the components of an OpenAPI document. Called by openapi.ts.

import { builtinSchema, objectMetaSchema } from './builtin.ts';
import { fromEntries, type Json, type JsonObject } from './json.ts';
import type { JsonSchema } from './json-schema.ts';
import { modelName, wellKnownTypes } from './openapi-names.ts';

/** Collects the components of one document. `refs` is their path: it differs between versions 2 and 3. */
export interface Components {
  readonly group: string;
  readonly version: string;
  readonly refs: '#/components/schemas/' | '#/definitions/';
  /** Filled as schemas are converted. */
  readonly found: Map<string, JsonObject>;
}

const wellKnown: Readonly<Record<string, JsonObject>> = {
  [wellKnownTypes.quantity]: {
    description: 'Quantity is a fixed-point number with an optional suffix, such as 500m, 1.5Gi or 2e3.',
    oneOf: [{ type: 'string' }, { type: 'number' }],
  },
  [wellKnownTypes.intOrString]: {
    description: 'IntOrString is a number or a text.',
    format: 'int-or-string',
    oneOf: [{ type: 'integer' }, { type: 'string' }],
  },
  [wellKnownTypes.fields]: {
    description:
      'FieldsV1 is a set of fields: f:<name> is a field, k:<keys> and v:<value> are items of a list, and . is the parent itself.',
    type: 'object',
  },
  [wellKnownTypes.time]: { description: 'Time is an instant in RFC 3339.', format: 'date-time', type: 'string' },
  [wellKnownTypes.patch]: { description: 'Patch is a patch of the content type of the request.', type: 'object' },
};

/** Version 2 supports neither oneOf nor nullable. */
const forVersion = (components: Components, schema: JsonObject): JsonObject =>
  components.refs === '#/definitions/' && Object.hasOwn(schema, 'oneOf')
    ? { ...fromEntries(Object.entries(schema).filter(([key]) => key !== 'oneOf')), type: 'string' }
    : schema;

const refTo = (components: Components, name: string): JsonObject => {
  const known = wellKnown[name];
  if (known !== undefined && !components.found.has(name)) components.found.set(name, forVersion(components, known));
  return { $ref: `${components.refs}${name}` };
};

/** The well-known type of a built-in field, determined from the extensions in its schema. */
const wellKnownName = (schema: JsonSchema): string | undefined => {
  if (schema['x-bullion-type'] === 'Quantity') return wellKnownTypes.quantity;
  if (schema['x-bullion-type'] === 'FieldsV1') return wellKnownTypes.fields;
  if (schema['x-kubernetes-int-or-string'] === true && schema.format === 'int-or-string')
    return wellKnownTypes.intOrString;
  return undefined;
};

/** A reference to the component of a model; the component is created at the first reference. */
export const referTo = (components: Components, model: string, schema: JsonSchema): JsonObject => {
  const name = modelName(model, components.group, components.version);
  if (!components.found.has(name)) {
    components.found.set(name, {});
    components.found.set(name, toObject(components, schema));
  }
  return refTo(components, name);
};

/** A reference that keeps the description of the referring field. */
const withOwnWords = (components: Components, ref: JsonObject, schema: JsonSchema): JsonObject => {
  const own = copyKeywords(schema, ['description', 'x-kubernetes-map-type', 'x-kubernetes-patch-strategy']);
  if (components.refs === '#/definitions/') return { ...own, ...ref };
  return Object.keys(own).length === 0 ? ref : { allOf: [ref], ...own };
};

const plainKeywords = [
  'description',
  'title',
  'type',
  'format',
  'enum',
  'pattern',
  'minLength',
  'maxLength',
  'minimum',
  'maximum',
  'exclusiveMinimum',
  'exclusiveMaximum',
  'multipleOf',
  'minItems',
  'maxItems',
  'uniqueItems',
  'minProperties',
  'maxProperties',
  'required',
  'nullable',
  'default',
  'example',
  'externalDocs',
  'x-kubernetes-preserve-unknown-fields',
  'x-kubernetes-int-or-string',
  'x-kubernetes-embedded-resource',
  'x-kubernetes-list-type',
  'x-kubernetes-list-map-keys',
  'x-kubernetes-map-type',
  'x-kubernetes-validations',
  'x-kubernetes-patch-merge-key',
  'x-kubernetes-patch-strategy',
] as const satisfies readonly (keyof JsonSchema)[];

const copyKeywords = (schema: JsonSchema, keywords: readonly (keyof JsonSchema)[]): JsonObject =>
  fromEntries(
    keywords.flatMap((keyword) => {
      const value = schema[keyword];
      return value === undefined ? [] : [[keyword, value as Json] as const];
    }),
  );

const toMap = (components: Components, schemas: Readonly<Record<string, JsonSchema>>): JsonObject =>
  fromEntries(Object.entries(schemas).map(([name, schema]) => [name, toOpenApi(components, schema)] as const));

/** Items refer to their type without a description of their own. */
const toItems = (components: Components, items: JsonSchema): JsonObject => {
  const converted = toOpenApi(components, items);
  const isPlainRef = Object.hasOwn(converted, '$ref') && components.refs === '#/components/schemas/';
  return isPlainRef ? { allOf: [converted], default: {} } : converted;
};

const toObject = (components: Components, schema: JsonSchema): JsonObject => {
  const convert = (child: JsonSchema): JsonObject => toOpenApi(components, child);
  const { properties, items, additionalProperties: values, allOf, anyOf, oneOf, not } = schema;
  const isVersion2 = components.refs === '#/definitions/';
  return {
    ...copyKeywords(schema, plainKeywords),
    ...(properties === undefined ? {} : { properties: toMap(components, properties) }),
    ...(items === undefined ? {} : { items: toItems(components, items) }),
    ...(values === undefined ? {} : { additionalProperties: typeof values === 'boolean' ? values : convert(values) }),
    ...(allOf === undefined ? {} : { allOf: allOf.map(convert) }),
    ...(anyOf === undefined || isVersion2 ? {} : { anyOf: anyOf.map(convert) }),
    ...(oneOf === undefined || isVersion2 ? {} : { oneOf: oneOf.map(convert) }),
    ...(not === undefined || isVersion2 ? {} : { not: convert(not) }),
  };
};

/** A schema in OpenAPI notation; built-in types become references. */
export const toOpenApi = (components: Components, schema: JsonSchema): JsonObject => {
  const known = wellKnownName(schema);
  if (known !== undefined) return withOwnWords(components, refTo(components, known), schema);
  const model = schema['x-bullion-type'];
  if (model === undefined) return toObject(components, schema);
  const original = model === 'V1ObjectMeta' ? objectMetaSchema() : schema;
  return withOwnWords(components, referTo(components, model, original), schema);
};

const text = (description: string): JsonSchema => ({ type: 'string', description });

const typeMeta = {
  apiVersion: text(
    'APIVersion defines the versioned schema of this representation of an object. Servers should convert recognized schemas to the latest internal value, and may reject unrecognized values. More info: https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md#resources',
  ),
  kind: text(
    'Kind is a string value representing the REST resource this object represents. Servers may infer this from the endpoint the client submits requests to. Cannot be updated. In CamelCase. More info: https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md#types-kinds',
  ),
};

const embeddedMeta = {
  apiVersion: text(
    'apiVersion defines the versioned schema of this representation of an object. More info: https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md#resources',
  ),
  kind: text(
    'kind is a string value representing the type of this object. In CamelCase. More info: https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md#types-kinds',
  ),
};

const metaDescription =
  "Standard object's metadata. More info: https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md#metadata";

const listMetaDescription =
  'Standard list metadata. More info: https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md#types-kinds';

/** A copy with another description that keeps lazy fields lazy. */
const describe = (schema: JsonSchema, description: string): JsonSchema =>
  Object.defineProperties(
    {},
    { ...Object.getOwnPropertyDescriptors(schema), description: { value: description, enumerable: true } },
  );

const describedMeta = (): JsonSchema => describe(objectMetaSchema(), metaDescription);

const mapProperties = (schema: JsonSchema): Readonly<Record<string, JsonSchema>> =>
  Object.fromEntries(Object.entries(schema.properties ?? {}).map(([name, child]) => [name, completeEmbedded(child)]));

/** Embedded resources get their type and metadata, wherever they are. */
const completeEmbedded = (schema: JsonSchema): JsonSchema => {
  const { items, additionalProperties: values } = schema;
  const isEmbedded = schema['x-kubernetes-embedded-resource'] === true;
  const properties = {
    ...mapProperties(schema),
    ...(isEmbedded ? { ...embeddedMeta, metadata: describedMeta() } : {}),
  };
  const required = new Set([...(schema.required ?? []), 'kind', 'apiVersion']);
  const isPair = schema['x-kubernetes-int-or-string'] === true && schema.anyOf === undefined;
  return {
    ...schema,
    ...(isEmbedded ? { required: [...required] } : {}),
    ...(isPair ? { anyOf: [{ type: 'integer' }, { type: 'string' }] } : {}),
    ...(Object.keys(properties).length === 0 ? {} : { properties }),
    ...(items === undefined ? {} : { items: completeEmbedded(items) }),
    ...(typeof values === 'object' ? { additionalProperties: completeEmbedded(values) } : {}),
  };
};

const published = new WeakMap<JsonSchema, JsonSchema>();

/**
 * The schema of a custom resource for clients, with apiVersion, kind and metadata. Server-side apply uses the same
 * one. Created once for each schema object.
 */
export const publishedSchema = (schema: JsonSchema): JsonSchema => {
  const known = published.get(schema);
  if (known !== undefined) return known;
  const complete = completeEmbedded({ ...schema, type: 'object' });
  const made = { ...complete, properties: { ...complete.properties, ...typeMeta, metadata: describedMeta() } };
  published.set(schema, made);
  return made;
};

/** The schema of the list of a kind. */
export const listSchema = (kind: string, plural: string, item: JsonSchema): JsonSchema => ({
  description: `${kind}List is a list of ${kind}`,
  type: 'object',
  required: ['items'],
  properties: {
    ...typeMeta,
    items: {
      type: 'array',
      description: `List of ${plural}. More info: https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md`,
      items: item,
    },
    metadata: describe(builtinSchema('', 'v1', 'ListMeta') ?? { type: 'object' }, listMetaDescription),
  },
});
