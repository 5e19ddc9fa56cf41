// The CustomResourceDefinition of a served kind, from its one description in shared/api.
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
          schema: { openAPIV3Schema: objectSchema(kind) },
        },
      ],
    },
  };
};

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
