import { describe, expect, it } from 'vitest';
import { isList, isObject, type Json, type JsonObject } from './json.ts';
import { openApiV2, openApiV3, openApiV3Index, publishedSchema, type OpenApiResource } from './openapi.ts';

const verbs = ['create', 'delete', 'deletecollection', 'get', 'list', 'patch', 'update', 'watch'];

const job: OpenApiResource = {
  group: 'batch',
  version: 'v1',
  kind: 'Job',
  plural: 'jobs',
  namespaced: true,
  verbs,
  subresources: ['status'],
};

const widget: OpenApiResource = {
  group: 'example.org',
  version: 'v1alpha1',
  kind: 'Widget',
  plural: 'widgets',
  namespaced: true,
  verbs,
  subresources: ['status'],
  schema: {
    type: 'object',
    properties: {
      spec: {
        type: 'object',
        required: ['size'],
        properties: {
          size: { type: 'integer', description: 'How large.' },
          template: {
            type: 'object',
            'x-kubernetes-embedded-resource': true,
            'x-kubernetes-preserve-unknown-fields': true,
          },
        },
      },
    },
  },
};

const at = (value: Json | undefined, ...path: string[]): Json | undefined =>
  path.reduce<Json | undefined>((current, key) => (isObject(current) ? current[key] : undefined), value);

/** Every $ref of a document. */
const refsIn = (value: Json): string[] => {
  if (isList(value)) return value.flatMap(refsIn);
  if (!isObject(value)) return [];
  const own = typeof value['$ref'] === 'string' ? [value['$ref']] : [];
  return [...own, ...Object.values(value).flatMap(refsIn)];
};

const danglingRefs = (document: JsonObject): string[] =>
  refsIn(document).filter((ref) => at(document, ...ref.split('/').slice(1)) === undefined);

describe('openApiV3', () => {
  const document = openApiV3({ group: 'batch', version: 'v1' }, [job]);

  it('has no dangling reference', () => {
    expect(refsIn(document).length).toBeGreaterThan(0);
    expect(danglingRefs(document)).toEqual([]);
    expect(danglingRefs(openApiV3({ group: 'example.org', version: 'v1alpha1' }, [widget]))).toEqual([]);
  });

  it('has the kind of each path, and the parameter for the validation of patches', () => {
    const patch = at(document, 'paths', '/apis/batch/v1/namespaces/{namespace}/jobs/{name}', 'patch');
    expect(patch).toMatchObject({ 'x-kubernetes-group-version-kind': { group: 'batch', version: 'v1', kind: 'Job' } });
    expect(at(patch, 'parameters')).toContainEqual({
      name: 'fieldValidation',
      in: 'query',
      schema: { type: 'string', uniqueItems: true },
    });
  });

  it('names types by their group', () => {
    const schemas = at(document, 'components', 'schemas');
    expect(at(schemas, 'io.k8s.api.batch.v1.Job')).toMatchObject({
      'x-kubernetes-group-version-kind': [{ group: 'batch', version: 'v1', kind: 'Job' }],
    });
    expect(at(schemas, 'io.k8s.api.core.v1.PodSpec')).toMatchObject({ required: ['containers'] });
    expect(at(schemas, 'io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta')).toBeDefined();
  });

  it('keeps the merge keys of lists, which kubectl apply reads', () => {
    expect(at(document, 'components', 'schemas', 'io.k8s.api.core.v1.PodSpec', 'properties', 'volumes')).toMatchObject({
      'x-kubernetes-patch-merge-key': 'name',
      'x-kubernetes-patch-strategy': 'merge,retainKeys',
    });
  });

  it('contains no extensions of this server', () => {
    expect(JSON.stringify(document)).not.toContain('x-bullion');
  });

  it('adds type and metadata to custom resources and their embedded resources', () => {
    const custom = openApiV3({ group: 'example.org', version: 'v1alpha1' }, [widget]);
    const schema = at(custom, 'components', 'schemas', 'org.example.v1alpha1.Widget');
    expect(at(schema, 'properties', 'metadata')).toMatchObject({
      allOf: [{ $ref: '#/components/schemas/io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta' }],
    });
    expect(at(schema, 'properties', 'spec', 'properties', 'template', 'properties', 'kind')).toMatchObject({
      type: 'string',
    });
    expect(at(custom, 'components', 'schemas', 'org.example.v1alpha1.WidgetList', 'properties', 'items')).toMatchObject(
      {
        items: { $ref: '#/components/schemas/org.example.v1alpha1.Widget' },
      },
    );
  });
});

describe('openApiV2', () => {
  it('has no dangling reference', () => {
    expect(danglingRefs(openApiV2([job, widget]))).toEqual([]);
  });
});

describe('openApiV3Index', () => {
  it('refers to each document with a hash of its version', () => {
    const index = openApiV3Index([{ path: 'apis/batch/v1', version: '1' }]);
    expect(at(index, 'paths', 'apis/batch/v1', 'serverRelativeURL')).toMatch(
      /^\/openapi\/v3\/apis\/batch\/v1\?hash=[0-9A-F]{128}$/,
    );
  });
});

describe('publishedSchema', () => {
  it('is created once for each schema', () => {
    const schema = widget.schema ?? {};
    expect(publishedSchema(schema)).toBe(publishedSchema(schema));
  });
});
