// HyperConverged and SSP as a cluster without their operators serves them, so that manifests with templates of golden images can be applied.
// Only the shape that the API needs: whatever is in them is kept.
import type { CustomResourceDefinition } from '#infra/local/controllers/snapshots/crds.ts';
import { hyperConvergeds, ssps } from '#shared/api/foreign/boot-sources.ts';
import type { ResourceType } from '#shared/api/object.ts';

const open = { type: 'object', 'x-kubernetes-preserve-unknown-fields': true } as const;

const build = ({ group, version, kind, plural }: ResourceType): CustomResourceDefinition => ({
  apiVersion: 'apiextensions.k8s.io/v1',
  kind: 'CustomResourceDefinition',
  metadata: { name: `${plural}.${group}` },
  spec: {
    group,
    scope: 'Namespaced',
    names: { kind, listKind: `${kind}List`, plural, singular: kind.toLowerCase() },
    versions: [
      {
        name: version,
        served: true,
        storage: true,
        schema: { openAPIV3Schema: { type: 'object', properties: { spec: open, status: open } } },
        subresources: { status: {} },
      },
    ],
  },
});

export const templateCrds: readonly CustomResourceDefinition[] = [
  build(hyperConvergeds as unknown as ResourceType),
  build(ssps as unknown as ResourceType),
];
