// How children are watched, and which of their changes reconcile the owner. Used where backends and volumes declare their watched children.
import type { Job } from '#shared/api/foreign/core.ts';
import type { VolumeSnapshot } from '#shared/api/foreign/snapshot.ts';
import { isQueued } from '#shared/populate/job/attempts.ts';
import { type KubeObject, type Owner, ownerOf, type ResourceType } from '#shared/api/object.ts';

export type Change = 'add' | 'update' | 'delete';

/** A kind of child that the backend watches. `verbs`: what plans do with it besides get, list and watch. */
export interface WatchedChild {
  readonly type: ResourceType;
  readonly verbs: readonly ('create' | 'patch' | 'delete')[];
  /** The image that owns a child; `undefined` for objects of others. */
  ownerOf(object: KubeObject): Owner | undefined;
  /** Whether a change of this child can affect its image. A needless `true` costs a few reads, a wrong `false` delays the image by a minute. */
  matters(object: KubeObject, change: Change): boolean;
}

/** One declaration, with a typed child for `matters`. */
export const follow = <T extends KubeObject>(
  type: ResourceType<T>,
  verbs: WatchedChild['verbs'],
  matters: (child: T) => boolean,
): WatchedChild => ({
  type: type,
  verbs,
  ownerOf,
  matters: (object: KubeObject, change: Change) => change === 'delete' || matters(object as T),
});

export const isLeaving = ({ metadata }: KubeObject): boolean => metadata.deletionTimestamp !== undefined;

/**
 * An attempt failed or the last one ended, or the Job waits for its turn. The start of an attempt is observed by its progress. Pods are not
 * watched: the tick reconciles owners of stuck ones.
 */
export const jobMatters = (job: Job): boolean =>
  (job.status?.failed ?? 0) > 0 || (job.status?.conditions ?? []).length > 0 || isQueued(job);

export const isSnapshotDecided = ({ status }: VolumeSnapshot): boolean =>
  status?.readyToUse === true || status?.error !== undefined;
