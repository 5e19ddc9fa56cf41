// The actions of a plan, as data: tests compare plans, and one small executor carries them out.
import { type Job, jobs } from '#shared/api/foreign/core.ts';
import type { KubeObject, ObjectKey, ResourceType } from '#shared/api/object.ts';
import { keyOf } from '#shared/api/object.ts';
import type { ImageState } from '#shared/populate/filled.ts';
import type { PopulateSettings } from '#shared/populate/settings.ts';

/** Decided by a pure function, carried out by the executor: actions in order, then one status write if `state` differs. */
export interface Plan {
  readonly actions: readonly Action[];
  readonly state: ImageState;
}

/** Input of planning besides the object and its children. Everything is injected, so plans are pure. */
export interface PlanContext {
  /** Milliseconds since the epoch. */
  readonly now: number;
  readonly settings: PopulateSettings;
}

export type Action =
  | {
      readonly do: 'create';
      readonly type: ResourceType;
      readonly object: KubeObject;
      /** An existing object of that name is the same one: a crash happened between this action and the next. */
      readonly mayExist?: true;
    }
  | {
      readonly do: 'patch';
      readonly type: ResourceType;
      readonly key: ObjectKey;
      /** Patch only this version of the object. Default: any version. */
      readonly resourceVersion?: string;
      /** JSON merge patch. */
      readonly patch: object;
    }
  | {
      readonly do: 'delete';
      readonly type: ResourceType;
      readonly key: ObjectKey;
      /** Delete only the observed object, never a successor with its name. */
      readonly uid: string;
      /** Foreground: the object is removed, and its deletion observed, only after its dependents are gone. */
      readonly propagation: 'Background' | 'Foreground';
    };

export const create = <T extends KubeObject>(type: ResourceType<T>, object: T): Action => ({
  do: 'create',
  type,
  object,
});

/** Changes fields that have no other writer, whatever else changed on the object. */
export const amend = (type: ResourceType, { namespace, name }: ObjectKey, change: object): Action => ({
  do: 'patch',
  type,
  key: { namespace, name },
  patch: change,
});

/** Like `create`, for objects whose content follows from their name. */
export const ensure = <T extends KubeObject>(type: ResourceType<T>, object: T): Action => ({
  do: 'create',
  type,
  object,
  mayExist: true,
});

export const patch = <T extends KubeObject>(type: ResourceType<T>, observed: T, change: object): Action => ({
  do: 'patch',
  type,
  key: keyOf(observed),
  resourceVersion: observed.metadata.resourceVersion ?? '',
  patch: change,
});

/** No action if the object does not exist or is already being deleted. */
export const remove = <T extends KubeObject>(type: ResourceType<T>, observed: T | undefined): readonly Action[] =>
  removal(type, observed, 'Background');

/** Like `remove`, but dependents go first: the object is removed, and its deletion observed, only after them. */
export const removeWhole = <T extends KubeObject>(type: ResourceType<T>, observed: T | undefined): readonly Action[] =>
  removal(type, observed, 'Foreground');

/** Removes the pods first: they are not watched, so an owner that waits for them is notified by the deletion of the Job. */
export const removeJob = (observed: Job | undefined): readonly Action[] => removeWhole(jobs, observed);

const removal = <T extends KubeObject>(
  type: ResourceType<T>,
  observed: T | undefined,
  propagation: 'Background' | 'Foreground',
): readonly Action[] =>
  observed === undefined || observed.metadata.deletionTimestamp !== undefined
    ? []
    : [{ do: 'delete', type, key: keyOf(observed), uid: observed.metadata.uid ?? '', propagation }];
