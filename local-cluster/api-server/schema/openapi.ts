// The OpenAPI documents of the API server: version 3 by group and version, which kubectl explain and apply read, and
// version 2 for older clients. Called by the discovery handlers.

import { createHash } from 'node:crypto';
import { builtinSchema } from './builtin.ts';
import { fromEntries, type JsonObject } from './json.ts';
import type { JsonSchema } from './json-schema.ts';
import { customName, modelName, wellKnownTypes } from './openapi-names.ts';
import { pathsOf, type PathResource } from './openapi-paths.ts';
import { listSchema, publishedSchema, referTo, toOpenApi, type Components } from './openapi-schemas.ts';

export { publishedSchema } from './openapi-schemas.ts';

export interface OpenApiResource extends Omit<PathResource, 'strategic'> {
  /** For a custom resource: the schema of its CRD version. Unset for built-in kinds. */
  readonly schema?: JsonSchema;
}

export interface OpenApiIndexEntry {
  /** `api/v1` or `apis/<group>/<version>`. */
  readonly path: string;
  /** Any value that changes with the document. */
  readonly version: string;
}

/** The index of version 3 documents, with a hash by which clients can cache each of them. */
export const openApiV3Index = (entries: readonly OpenApiIndexEntry[]): JsonObject => ({
  paths: fromEntries(
    entries.map(({ path, version }) => {
      const hash = createHash('sha512').update(version).digest('hex').toUpperCase();
      return [path, { serverRelativeURL: `/openapi/v3/${path}?hash=${hash}` }] as const;
    }),
  ),
});

const kindOf = ({ group, version, kind }: OpenApiResource, suffix = ''): JsonObject => ({
  'x-kubernetes-group-version-kind': [{ group, kind: `${kind}${suffix}`, version }],
});

interface Names {
  readonly object: string;
  readonly list: string;
}

const setKind = (components: Components, name: string, kind: JsonObject): void => {
  components.found.set(name, { ...components.found.get(name), ...kind });
};

const addCustom = (components: Components, resource: OpenApiResource, schema: JsonSchema): Names => {
  const object = customName(resource.group, resource.version, resource.kind);
  const list = `${object}List`;
  components.found.set(object, { ...toOpenApi(components, publishedSchema(schema)), ...kindOf(resource) });
  const listOpenApi = toOpenApi(components, listSchema(resource.kind, resource.plural, { type: 'object' }));
  const properties = listOpenApi['properties'] as JsonObject;
  const items = { ...(properties['items'] as JsonObject), items: { $ref: `${components.refs}${object}` } };
  components.found.set(list, { ...listOpenApi, properties: { ...properties, items }, ...kindOf(resource, 'List') });
  return { object, list };
};

const addModel = (components: Components, resource: OpenApiResource, suffix: string): string | undefined => {
  const schema = builtinSchema(resource.group, resource.version, `${resource.kind}${suffix}`);
  const model = schema?.['x-bullion-type'];
  if (schema === undefined || model === undefined) return undefined;
  referTo(components, model, schema);
  const name = modelName(model, components.group, components.version);
  setKind(components, name, kindOf(resource, suffix));
  return name;
};

const addResource = (components: Components, resource: OpenApiResource): Names => {
  if (resource.schema !== undefined) return addCustom(components, resource, resource.schema);
  const object = addModel(components, resource, '') ?? wellKnownTypes.status;
  return { object, list: addModel(components, resource, 'List') ?? object };
};

const addCommon = (components: Components): void => {
  for (const kind of ['DeleteOptions', 'Status']) {
    const schema = builtinSchema('', 'v1', kind);
    if (schema !== undefined) referTo(components, `V1${kind}`, schema);
  }
  components.found.set(wellKnownTypes.patch, {
    description: 'Patch is a patch of the content type of the request.',
    type: 'object',
  });
};

const sorted = (found: ReadonlyMap<string, JsonObject>): JsonObject =>
  fromEntries([...found].toSorted(([a], [b]) => (a < b ? -1 : 1)));

const documentParts = (components: Components, resources: readonly OpenApiResource[]): JsonObject => {
  addCommon(components);
  return resources.reduce<JsonObject>((paths, resource) => {
    const names = addResource({ ...components, group: resource.group, version: resource.version }, resource);
    const described = { ...resource, strategic: resource.schema === undefined };
    return { ...paths, ...pathsOf(described, { prefix: components.refs, ...names }) };
  }, {});
};

const info = { title: 'Kubernetes', version: 'unversioned' };

/** The version 3 document of one group and version, over the resources it serves. */
export const openApiV3 = (
  groupVersion: { readonly group: string; readonly version: string },
  resources: readonly OpenApiResource[],
): JsonObject => {
  const components: Components = { ...groupVersion, refs: '#/components/schemas/', found: new Map() };
  const paths = documentParts(components, resources);
  return { openapi: '3.0.0', info, paths, components: { schemas: sorted(components.found) } };
};

/** The one version 2 document over everything served. */
export const openApiV2 = (resources: readonly OpenApiResource[]): JsonObject => {
  const components: Components = { group: '', version: 'v1', refs: '#/definitions/', found: new Map() };
  const paths = documentParts(components, resources);
  return { swagger: '2.0', info, paths, definitions: sorted(components.found) };
};
