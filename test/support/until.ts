// Waits for the state of one object, by a watch: no state between two reads is missed, and waiting costs neither side anything.
import { setTimeout as sleep } from 'node:timers/promises';
import type { KubeObject, ObjectKey, ResourceType } from '#shared/api/object.ts';
import type { KubeClient } from '#shared/clients/kube/client.ts';
import { isConflict, isRetryable } from '#shared/runtime/errors.ts';

interface Wanted<T extends KubeObject> {
  readonly kube: KubeClient;
  readonly type: ResourceType<T>;
  readonly key: ObjectKey;
  readonly isSo: (object: T | undefined) => boolean;
  readonly signal: AbortSignal;
}

/** Follows the object, which is `undefined` while it is absent. Returns whether it matched before the server closed the watch. */
const follow = async <T extends KubeObject>({ kube, type, key, isSo, signal }: Wanted<T>): Promise<boolean> => {
  const where = { namespace: key.namespace, fieldSelector: `metadata.name=${key.name}` };
  const { items, metadata } = await kube.list(type, where);
  if (isSo(items[0])) return true;
  for await (const event of kube.watch(type, { ...where, resourceVersion: metadata.resourceVersion, signal })) {
    if (event.type !== 'BOOKMARK' && isSo(event.type === 'DELETED' ? undefined : event.object)) return true;
  }
  return false;
};

/** The object once it matches; fails with its last state after `seconds`. Waits for an API server that restarts. */
export const until = async <T extends KubeObject>(
  kube: KubeClient,
  type: ResourceType<T>,
  key: ObjectKey,
  isSo: (object: T | undefined) => boolean,
  seconds = 240,
): Promise<T | undefined> => {
  const signal = AbortSignal.timeout(seconds * 1000);
  let last: T | undefined;
  const observe = (object: T | undefined): boolean => isSo((last = object));
  while (!signal.aborted) {
    try {
      if (await follow({ kube, type, key, isSo: observe, signal })) return last;
    } catch (error) {
      if (!isRetryable(error) && !isConflict(error)) throw error;
      await sleep(100);
    }
  }
  throw new Error(`${type.kind} ${key.name} is still ${JSON.stringify(last, undefined, 1)}`);
};

export const untilGone = async (kube: KubeClient, type: ResourceType, key: ObjectKey, seconds?: number) => {
  await until(kube, type, key, (object) => object === undefined, seconds);
};

type StatusOf<T> = T extends { readonly status?: infer S } ? NonNullable<S> : never;

/** The status once it matches. */
export const untilStatus = async <T extends KubeObject & { readonly status?: object | undefined }>(
  kube: KubeClient,
  type: ResourceType<T>,
  key: ObjectKey,
  isSo: (status: StatusOf<T>) => boolean,
  seconds?: number,
): Promise<StatusOf<T>> => {
  const isThere = (object: T | undefined): boolean =>
    object?.status !== undefined && isSo(object.status as StatusOf<T>);
  return (await until(kube, type, key, isThere, seconds))?.status as StatusOf<T>;
};
