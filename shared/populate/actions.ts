// What a plan may ask for: data, so that plans are compared in tests and carried out by one small executor.
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

/** What planning may know besides the object and its children. Everything in it is injected, so plans are pure. */
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
      /** One of that name can only be the same: a crash came between it and what follows. */
      readonly mayExist?: true;
    }
  | {
      readonly do: 'patch';
      readonly type: ResourceType;
      readonly key: ObjectKey;
      /** Only the object as it was observed is patched; left out: whatever else was changed on it. */
      readonly resourceVersion?: string;
      /** JSON merge patch. */
      readonly patch: object;
    }
  | {
      readonly do: 'delete';
      readonly type: ResourceType;
      readonly key: ObjectKey;
      /** Only the object that was observed is deleted, never a successor of its name. */
      readonly uid: string;
      /** Foreground: gone, and reported as gone, only once what it owns is gone. */
      readonly propagation: 'Background' | 'Foreground';
    };

export const create = <T extends KubeObject>(type: ResourceType<T>, object: T): Action => ({
  do: 'create',
  type,
  object,
});

/** Changes fields that nobody else writes, whatever became of the rest. */
export const amend = (type: ResourceType, { namespace, name }: ObjectKey, change: object): Action => ({
  do: 'patch',
  type,
  key: { namespace, name },
  patch: change,
});

/** As `create`, of what has one content for each name. */
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

/** Nothing when the object is not there or is already on its way out. */
export const remove = <T extends KubeObject>(type: ResourceType<T>, observed: T | undefined): readonly Action[] =>
  removal(type, observed, 'Background');

/** As `remove`, with what it owns first: it is gone, and reported as gone, only after that. */
export const removeWhole = <T extends KubeObject>(type: ResourceType<T>, observed: T | undefined): readonly Action[] =>
  removal(type, observed, 'Foreground');

/** With its pods first: those are not followed, and who waits for them must hear of their end through the Job. */
export const removeJob = (observed: Job | undefined): readonly Action[] => removeWhole(jobs, observed);

const removal = <T extends KubeObject>(
  type: ResourceType<T>,
  observed: T | undefined,
  propagation: 'Background' | 'Foreground',
): readonly Action[] =>
  observed === undefined || observed.metadata.deletionTimestamp !== undefined
    ? []
    : [{ do: 'delete', type, key: keyOf(observed), uid: observed.metadata.uid ?? '', propagation }];
