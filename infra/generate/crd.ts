// The CustomResourceDefinition of a served kind, from its description in shared/api.
import { fieldDescriptions } from '#infra/generate/field-descriptions.ts';
import type { GeneratedManifest } from '#infra/generate/manifest.ts';
import type { PrinterColumn, ServedKind } from '#shared/api/kind.ts';
import { type StructuralSchema, toStructuralSchema } from '#shared/api/structural-schema.ts';

/** `kubectl get bullion` lists every kind. */
const ownCategory = 'bullion';

export const buildCrd = (kind: ServedKind): GeneratedManifest => {
  const { type } = kind;
  return {
    apiVersion: 'apiextensions.k8s.io/v1',
    kind: 'CustomResourceDefinition',
    metadata: { name: `${type.plural}.${type.group}`, labels: { 'app.kubernetes.io/part-of': 'bullion' } },
    spec: {
      group: type.group,
      names: {
        kind: type.kind,
        listKind: `${type.kind}List`,
        plural: type.plural,
        singular: kind.singular,
        ...(kind.shortNames.length === 0 ? {} : { shortNames: kind.shortNames }),
        categories: [ownCategory, ...kind.categories],
      },
      scope: type.namespaced ? 'Namespaced' : 'Cluster',
      versions: [
        {
          name: type.version,
          served: true,
          storage: true,
          subresources: { status: {} },
          additionalPrinterColumns: kind.columns.map(toColumn),
          schema: { openAPIV3Schema: described(objectSchema(kind)) },
        },
      ],
    },
  };
};

/** Kubernetes describes the metadata of an object itself, and does not permit another description. */
const isTheirs = (name: string, parent: string): boolean => name === 'metadata' && parent === '';

/** Adds common descriptions to fields without their own. `parent`: the field with the schema. */
const described = (schema: StructuralSchema, parent = ''): StructuralSchema => ({
  ...schema,
  ...(schema.properties === undefined ? {} : { properties: describedFields(schema.properties, parent) }),
  ...(schema.items === undefined ? {} : { items: described(schema.items, parent) }),
  ...(schema.additionalProperties === undefined
    ? {}
    : { additionalProperties: described(schema.additionalProperties, parent) }),
});

const describedFields = (
  fields: NonNullable<StructuralSchema['properties']>,
  parent: string,
): NonNullable<StructuralSchema['properties']> =>
  Object.fromEntries(
    Object.entries(fields).map(([name, field]) => {
      const known = isTheirs(name, parent) ? undefined : descriptionOf(name, parent);
      return [name, described(known === undefined ? field : { description: known, ...field }, name)];
    }),
  );

const descriptionOf = (name: string, parent: string): string | undefined =>
  fieldDescriptions[`${parent}.${name}`] ?? fieldDescriptions[name];

const toColumn = ({
  name,
  type,
  jsonPath,
  description,
  priority,
}: PrinterColumn): Readonly<Record<string, unknown>> => ({
  name,
  type,
  jsonPath,
  ...(description === undefined ? {} : { description }),
  ...(priority === undefined || priority === 0 ? {} : { priority }),
});

const objectSchema = (kind: ServedKind): StructuralSchema => ({
  type: 'object',
  description: kind.description,
  required: ['spec'],
  properties: {
    apiVersion: { type: 'string', description: 'The version of the schema this object is written in.' },
    kind: { type: 'string', description: 'The kind of this object, in CamelCase.' },
    metadata: { type: 'object' },
    spec: { description: 'What is wanted.', ...toStructuralSchema(kind.spec) },
    status: { description: 'What there is, and how it came to be.', ...toStructuralSchema(kind.status) },
  },
});
