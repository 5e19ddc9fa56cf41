// The children the csi backend follows, and which of their changes can move an image on.
import { type Job, type PersistentVolumeClaim, jobs, persistentVolumeClaims } from '#shared/api/foreign/core.ts';
import { type VolumeSnapshot, volumeSnapshots } from '#shared/api/foreign/snapshot.ts';
import type { KubeObject, ResourceType } from '#shared/api/object.ts';
import { ownerOf } from '#shared/api/owner.ts';
import type { Change, Sidecar } from '#shared/backends/backend.ts';

const isLeaving = ({ metadata }: KubeObject): boolean => metadata.deletionTimestamp !== undefined;

/** One declaration; `matters` sees the child typed. */
const follow = <T extends KubeObject>(
  type: ResourceType<T>,
  verbs: Sidecar['verbs'],
  matters: (child: T) => boolean,
): Sidecar => ({
  type: type as unknown as ResourceType,
  verbs,
  ownerOf,
  matters: (object: KubeObject, change: Change) => change === 'delete' || matters(object as T),
});

export const sidecars: readonly Sidecar[] = [
  // An attempt failed or the last one ended. That one began is told by its progress. Pods are not followed: the tick sees to those that
  // are stuck.
  follow<Job>(
    jobs,
    ['create', 'delete'],
    ({ status }) => (status?.failed ?? 0) > 0 || (status?.conditions ?? []).length > 0,
  ),
  follow<PersistentVolumeClaim>(
    persistentVolumeClaims,
    ['create', 'patch', 'delete'],
    (volume) => volume.status?.phase === 'Lost' || isLeaving(volume),
  ),
  follow<VolumeSnapshot>(
    volumeSnapshots,
    ['create', 'delete'],
    ({ status }) => status?.readyToUse === true || status?.error !== undefined,
  ),
];
