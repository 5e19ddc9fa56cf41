// The children the csi backend follows, and which of their changes can move an image on.
import { type PersistentVolumeClaim, jobs, persistentVolumeClaims } from '#shared/api/foreign/core.ts';
import { volumeSnapshots } from '#shared/api/foreign/snapshot.ts';
import type { WatchedChild } from '#shared/backends/backend.ts';
import { follow, hasAttemptEnded, isLeaving, isSnapshotDecided } from '#shared/backends/watched-child.ts';
import { recordOf } from '#shared/populate/clone-record.ts';
import { populationOf } from '#shared/populate/volume.ts';

/** Made by the storage from another volume, and not marked yet. */
const isCopied = (volume: PersistentVolumeClaim): boolean =>
  volume.status?.phase === 'Bound' && recordOf(volume) !== undefined && populationOf(volume) === undefined;

export const watchedChildren: readonly WatchedChild[] = [
  follow(jobs, ['create', 'delete'], hasAttemptEnded),
  follow<PersistentVolumeClaim>(
    persistentVolumeClaims,
    ['create', 'patch', 'delete'],
    (volume) => volume.status?.phase === 'Lost' || isLeaving(volume) || isCopied(volume),
  ),
  follow(volumeSnapshots, ['create', 'delete'], isSnapshotDecided),
];
