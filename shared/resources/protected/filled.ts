// Whether a child of an image holds it already. What is still being filled holds nothing, and is made again when it goes.
import { annotations, labels } from '#shared/api/names.ts';
import type { KubeObject } from '#shared/api/object.ts';

interface WithStatus extends KubeObject {
  readonly status?: { readonly readyToUse?: boolean; readonly phase?: string };
}

/** A snapshot says that it is ready, a data volume that it succeeded; a class is one from the start. */
const holds: Readonly<Record<string, (object: WithStatus) => boolean>> = {
  PersistentVolumeClaim: ({ metadata }) => metadata.annotations?.[annotations.populated] !== undefined,
  VolumeSnapshot: ({ status }) => status?.readyToUse === true,
  DataVolume: ({ status }) => status?.phase === 'Succeeded',
  StorageClass: () => true,
};

const roles: readonly (string | undefined)[] = ['volume', 'snapshot', 'class'];

export const isFilledVolume = (object: KubeObject): boolean =>
  roles.includes(object.metadata.labels?.[labels.role]) && holds[object.kind]?.(object) === true;
