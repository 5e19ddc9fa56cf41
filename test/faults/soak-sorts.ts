// The sorts of objects that a soak keeps in flight, and how each of them ends.
import { dataVolumeKind } from '#shared/api/cdi/data-volume.ts';
import { harvesterImageKind } from '#shared/api/harvester/image.ts';
import { hyperCloudImageKind } from '#shared/api/hypercloud/image.ts';
import { volumeExportKind } from '#shared/api/hypercloud/volume-export.ts';
import type { KubeObject, ResourceType } from '#shared/api/object.ts';
import type { TestRegistry } from '#test/support/registry/server.ts';

export const namespace = 'default';

export interface World {
  readonly dir: string;
  readonly dataDir: string;
  /** The disk that everything is made of. */
  readonly raw: string;
  readonly http: string;
  readonly image: string;
  readonly registry: TestRegistry;
}

export interface Sort {
  readonly name: string;
  readonly type: ResourceType<Loose>;
  readonly spec: (world: World, name: string) => object;
  readonly phase: (status: Status) => 'done' | 'failed' | 'running';
  /** The claim with its bytes; `undefined`: it has none. */
  readonly claimOf: (object: Loose) => string | undefined;
}

export type Status = Readonly<Record<string, unknown>>;
export interface Loose extends KubeObject {
  readonly spec?: unknown;
  readonly status?: Status;
}

const loosely = (type: unknown): ResourceType<Loose> => type as ResourceType<Loose>;
const phaseOf =
  (field: string, done: string, failed: string): Sort['phase'] =>
  (status) =>
    status[field] === done ? 'done' : status[field] === failed ? 'failed' : 'running';
const volumeOf = ({ status }: Loose): string | undefined =>
  (status?.['children'] as { readonly volume?: string } | undefined)?.volume;
const ofDataVolume = {
  phase: phaseOf('phase', 'Succeeded', 'Failed'),
  claimOf: ({ metadata }: Loose) => metadata.name,
};
const dataVolumeOf = (name: string, source: (world: World) => object): Sort => ({
  name,
  type: loosely(dataVolumeKind.type),
  spec: (world) => ({ source: source(world), storage: { storageClassName: 'local' } }),
  ...ofDataVolume,
});

export const dataVolumeSort = dataVolumeOf('http', ({ http }) => ({ http: { url: http } }));

export const sorts: readonly Sort[] = [
  {
    name: 'hypercloud',
    type: loosely(hyperCloudImageKind.type),
    spec: ({ http }) => ({ source: { http }, storageClassName: 'local' }),
    phase: phaseOf('state', 'Available', 'Error'),
    claimOf: volumeOf,
  },
  {
    name: 'plain',
    type: loosely(hyperCloudImageKind.type),
    spec: ({ http }) => ({ source: { http }, storageClassName: 'local-plain' }),
    phase: phaseOf('state', 'Available', 'Error'),
    claimOf: volumeOf,
  },
  {
    name: 'harvester',
    type: loosely(harvesterImageKind.type),
    spec: ({ http }, name) => ({
      backend: 'csi',
      displayName: name,
      sourceType: 'download',
      url: http,
      targetStorageClassName: 'local',
    }),
    phase: phaseOf('phase', 'Imported', 'Failed'),
    claimOf: volumeOf,
  },
  dataVolumeSort,
  dataVolumeOf('registry', ({ image }) => ({ registry: { url: image } })),
  dataVolumeOf('clone', () => ({ pvc: { namespace, name: 'origin' } })),
  {
    name: 'export',
    type: loosely(volumeExportKind.type),
    spec: ({ registry }, name) => ({
      pvcName: 'origin',
      destination: { registry: { url: `docker://${registry.host}/soak/disk:${name}` } },
    }),
    phase: phaseOf('state', 'Completed', 'Error'),
    claimOf: () => undefined,
  },
];
