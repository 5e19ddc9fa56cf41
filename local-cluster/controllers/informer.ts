// A cache of all objects of one kind, kept up to date by list and watch. The basis of every controller here.
import { setTimeout as sleep } from 'node:timers/promises';
import type { KubeObject, ObjectKey, ResourceType } from '#shared/api/object.ts';
import type { KubeClient } from '#shared/clients/kube/client.ts';
import { isConflict, isNotFound } from '#shared/runtime/errors.ts';

export interface InformerOptions<T extends KubeObject> {
  readonly kube: KubeClient;
  readonly type: ResourceType<T>;
  /** Called for every change with the newest known object; `removed` when it was deleted. Must not throw. */
  readonly onChange: (object: T, removed: boolean) => void;
  /** Milliseconds between calls of `onChange` for all known objects, a safety net for missed work. */
  readonly resyncMs?: number;
  readonly signal: AbortSignal;
}

export interface Informer<T extends KubeObject> {
  /** Resolves once the first list is complete. */
  readonly synced: Promise<void>;
  get(key: string): T | undefined;
  all(): readonly T[];
  /** Resolves after the signal was aborted and the watch is closed. */
  readonly finished: Promise<void>;
}

/** `namespace/name`, or `name` alone for cluster-scoped objects. */
export const textOf = (key: ObjectKey): string =>
  key.namespace === undefined ? key.name : `${key.namespace}/${key.name}`;

export const keyOfText = (text: string): ObjectKey => {
  const [first = '', second] = text.split('/', 2);
  return second === undefined ? { name: first } : { namespace: first, name: second };
};

/** Milliseconds before a closed watch is opened again, to limit requests to a server that closes at once. */
const reconnectMs = 20;

/** Milliseconds between retries while the server is unreachable or does not serve the kind. */
const pauseMs = 500;

export const createInformer = <T extends KubeObject>(options: InformerOptions<T>): Informer<T> => {
  const { kube, type, onChange, resyncMs = 30_000, signal } = options;
  const objects = new Map<string, T>();
  const synced = Promise.withResolvers<void>();

  const put = (object: T): void => {
    const key = textOf(object.metadata);
    const known = objects.get(key);
    objects.set(key, object);
    if (known !== undefined && known.metadata.uid !== object.metadata.uid) onChange(known, true);
    if (known?.metadata.resourceVersion !== object.metadata.resourceVersion) onChange(object, false);
  };

  const remove = (object: T): void => {
    objects.delete(textOf(object.metadata));
    onChange(object, true);
  };

  const relist = async (): Promise<string> => {
    const { version, items } = await listEverything(kube, type);
    const present = new Set(items.map((item) => textOf(item.metadata)));
    for (const [key, object] of objects) if (!present.has(key)) remove(object);
    for (const item of items) put(item);
    synced.resolve();
    return version;
  };

  /** Watches changes until the server closes the connection; returns the version to resume from. */
  const follow = async (from: string): Promise<string> => {
    let version = from;
    for await (const { type: change, object } of kube.watch(type, { resourceVersion: from, signal })) {
      version = object.metadata.resourceVersion ?? version;
      if (change === 'DELETED') remove(object);
      else if (change !== 'BOOKMARK') put(object);
    }
    return version;
  };

  const run = async (): Promise<void> => {
    let version: string | undefined;
    while (!signal.aborted) {
      try {
        version = await (version === undefined ? relist() : follow(version));
        await sleep(reconnectMs, undefined, { signal });
      } catch (error) {
        // An expired version, or a kind that was deleted: the cache must be compared with a new list. Anything else is a broken connection.
        if (isConflict(error) || isNotFound(error)) version = undefined;
        if (isNotFound(error)) objects.forEach(remove);
        await sleep(pauseMs, undefined, { signal }).catch(() => undefined);
      }
    }
  };

  const resync = setInterval(() => {
    for (const object of objects.values()) onChange(object, false);
  }, resyncMs);
  signal.addEventListener('abort', () => clearInterval(resync), { once: true });

  return {
    synced: synced.promise,
    get: (key) => objects.get(key),
    all: () => [...objects.values()],
    finished: run(),
  };
};

const listEverything = async <T extends KubeObject>(
  kube: KubeClient,
  type: ResourceType<T>,
): Promise<{ readonly version: string; readonly items: readonly T[] }> => {
  const items: T[] = [];
  let page = await kube.list(type, { limit: 500 });
  items.push(...page.items);
  while (page.metadata.continue !== undefined && page.metadata.continue !== '') {
    page = await kube.list(type, { limit: 500, continue: page.metadata.continue });
    items.push(...page.items);
  }
  return { version: page.metadata.resourceVersion, items };
};
