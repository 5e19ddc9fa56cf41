// What a plan may ask for: data, so that plans are compared in tests and carried out by one small executor.
import type { KubeObject, ObjectKey, ResourceType } from '#shared/api/object.ts';

export type Action =
  | { readonly do: 'create'; readonly type: ResourceType; readonly object: KubeObject }
  | { readonly do: 'patch'; readonly type: ResourceType; readonly key: ObjectKey; readonly patch: object }
  | {
      readonly do: 'delete';
      readonly type: ResourceType;
      readonly key: ObjectKey;
      /** Only the object that was seen is deleted, never a successor of its name. */
      readonly uid: string;
      readonly propagation?: 'Background' | 'Foreground';
    };

export const create = <T extends KubeObject>(type: ResourceType<T>, object: T): Action => ({
  do: 'create',
  type: type as unknown as ResourceType,
  object,
});
