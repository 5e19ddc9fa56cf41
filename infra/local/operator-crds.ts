// HyperConverged, SSP, and the kinds of Harvester for backups, so that their manifests can be applied without their operators. The schemas
// accept any content.
import type { CustomResourceDefinition } from '#local-cluster/controllers/snapshots/crds.ts';
import { hyperConvergeds, ssps, sspVersions } from '#shared/api/foreign/boot-sources.ts';
import { harvesterSettings, virtualMachineBackups } from '#shared/api/foreign/backup.ts';
import type { ResourceType } from '#shared/api/object.ts';

const open = { type: 'object', 'x-kubernetes-preserve-unknown-fields': true } as const;

/** Serves a kind with any content, in its own version and in older ones. */
export const buildOpenCrd = (
  { group, version, kind, plural, namespaced }: ResourceType,
  fields: object = { spec: open, status: open },
  older: readonly string[] = [],
): CustomResourceDefinition => ({
  apiVersion: 'apiextensions.k8s.io/v1',
  kind: 'CustomResourceDefinition',
  metadata: { name: `${plural}.${group}` },
  spec: {
    group,
    scope: namespaced ? 'Namespaced' : 'Cluster',
    names: { kind, listKind: `${kind}List`, plural, singular: kind.toLowerCase() },
    versions: [version, ...older].map((name) => ({
      name,
      served: true,
      storage: name === version,
      schema: { openAPIV3Schema: { type: 'object', properties: fields } },
      subresources: { status: {} },
    })),
  },
});

export const operatorCrds: readonly CustomResourceDefinition[] = [
  buildOpenCrd(hyperConvergeds),
  buildOpenCrd(ssps, undefined, sspVersions.slice(1)),
  buildOpenCrd(virtualMachineBackups),
  buildOpenCrd(harvesterSettings, {
    value: { type: 'string' },
    default: { type: 'string' },
  }),
];
