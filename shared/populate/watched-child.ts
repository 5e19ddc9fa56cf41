// How children are followed, and which of their changes can move an owner on. Called where backends and volumes declare what they follow.
import type { Job } from '#shared/api/foreign/core.ts';
import type { VolumeSnapshot } from '#shared/api/foreign/snapshot.ts';
import type { KubeObject, ResourceType } from '#shared/api/object.ts';
import { type Owner, ownerOf } from '#shared/api/owner.ts';

export type Change = 'add' | 'update' | 'delete';

/** A child kind the backend follows. `verbs` beside get, list and watch are what plans do with it. */
export interface WatchedChild {
  readonly type: ResourceType;
  readonly verbs: readonly ('create' | 'patch' | 'delete')[];
  /** The image a child belongs to; `undefined` for objects that are none of ours. */
  ownerOf(object: KubeObject): Owner | undefined;
  /** Whether a change of this child can move its image on. Saying `true` too often costs a few reads, `false` wrongly a minute. */
  matters(object: KubeObject, change: Change): boolean;
}

/** One declaration; `matters` sees the child typed. */
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

/** An attempt failed or the last one ended. That one began is seen from its progress. Pods are not followed: the tick sees to those that are stuck. */
export const hasAttemptEnded = ({ status }: Job): boolean =>
  (status?.failed ?? 0) > 0 || (status?.conditions ?? []).length > 0;

export const isSnapshotDecided = ({ status }: VolumeSnapshot): boolean =>
  status?.readyToUse === true || status?.error !== undefined;
