// The store of the in-memory API: objects, their versions, and changes. Created by memory-kube.ts.
import { isDeepStrictEqual } from 'node:util';
import { type KubeObject, type ObjectKey, type ResourceType, apiVersionOf } from '#shared/api/object.ts';
import type { ListOptions } from '#shared/clients/kube/client.ts';
import { Conflict, InvalidInput, NotFound } from '#shared/runtime/errors.ts';
import { parseLabelSelector } from '#local-cluster/api-server/selectors/label.ts';
import { selectsFields } from './select.ts';

export interface Change {
  readonly type: 'ADDED' | 'MODIFIED' | 'DELETED';
  readonly object: KubeObject;
  /** The previous version. */
  readonly before?: KubeObject | undefined;
}

export interface StoreOptions {
  /** Milliseconds since the epoch. */
  readonly now: () => number;
  /** Plurals whose status is a subresource; other kinds accept status like any field. */
  readonly withStatus: readonly string[];
  /** Finalizers that the API server's plugins add at creation, by plural. */
  readonly protect: Readonly<Record<string, readonly string[]>>;
  /** First group of its UIDs, eight hex digits: distinguishes several clusters. */
  readonly uidPrefix?: string | undefined;
}

export interface Stored {
  readonly type: ResourceType;
  object: KubeObject;
}

export type Store = ReturnType<typeof createStore>;

/** For JSON; several times as fast as structuredClone, which took most of a simulation's time. */
export const copy = <T>(value: T): T => {
  if (typeof value !== 'object' || value === null) return value;
  if (Array.isArray(value)) return value.map(copy) as T;
  const result: Record<string, unknown> = {};
  for (const [key, field] of Object.entries(value)) if (field !== undefined) result[key] = copy(field);
  return result as T;
};

const keyOf = (type: ResourceType, { namespace, name }: ObjectKey): string =>
  [type.group, type.plural, type.namespaced ? (namespace ?? '') : '', name].join('|');

const isOf = (type: ResourceType, stored: Stored): boolean =>
  stored.type.plural === type.plural && stored.type.group === type.group;

const isGone = ({ metadata }: KubeObject): boolean =>
  metadata.deletionTimestamp !== undefined && (metadata.finalizers ?? []).length === 0;

const checkVersion = (before: KubeObject, next: KubeObject): void => {
  const { resourceVersion, uid } = next.metadata;
  if (resourceVersion !== undefined && resourceVersion !== before.metadata.resourceVersion) {
    throw new Conflict(`${before.kind} "${before.metadata.name}" has been modified`);
  }
  if (uid !== undefined && uid !== before.metadata.uid) {
    throw new InvalidInput(`metadata.uid: ${uid}: field is immutable`);
  }
};

const statusOf = (object: KubeObject): unknown => (object as { status?: unknown }).status;
const specOf = (object: KubeObject): unknown => (object as { spec?: unknown }).spec;

export const createStore = ({ now, withStatus, protect, uidPrefix = '00000000' }: StoreOptions) => {
  const objects = new Map<string, Stored>();
  const listeners: ((change: Change) => void)[] = [];
  let version = 0;
  let uids = 0;

  const time = () => new Date(now()).toISOString().replace(/\.\d{3}Z$/, 'Z');
  const nextUid = () => `${uidPrefix}-0000-4000-8000-${String((uids += 1)).padStart(12, '0')}`;
  const nextVersion = () => String((version += 1));
  const emit = (change: Change) => {
    // Stored objects are replaced, never changed, so that they can be returned directly.
    for (const listener of listeners) listener(change);
  };
  const find = (type: ResourceType, key: ObjectKey) => objects.get(keyOf(type, key));

  /** Stores a changed object: no effect without a difference, removal if its last finalizer is gone. */
  const put = (stored: Stored, next: KubeObject): KubeObject => {
    const before = stored.object;
    const same = { ...next, metadata: { ...next.metadata, resourceVersion: before.metadata.resourceVersion! } };
    if (isDeepStrictEqual(same, before)) return copy(before);
    const generation = (before.metadata.generation ?? 1) + (isDeepStrictEqual(specOf(before), specOf(next)) ? 0 : 1);
    const object = { ...next, metadata: { ...next.metadata, generation, resourceVersion: nextVersion() } };
    if (isGone(object)) {
      objects.delete(keyOf(stored.type, object.metadata));
      emit({ type: 'DELETED', object, before });
    } else {
      stored.object = object;
      emit({ type: 'MODIFIED', object, before });
    }
    return copy(object);
  };

  /** The allowed changes of a write to the main resource or to its status. Throws Conflict if it was made for another version. */
  const merge = ({ type, object: before }: Stored, next: KubeObject, subresource?: string): KubeObject => {
    const { uid, creationTimestamp, deletionTimestamp } = before.metadata;
    const metadata = {
      ...next.metadata,
      uid: uid!,
      creationTimestamp: creationTimestamp!,
      ...(deletionTimestamp === undefined ? {} : { deletionTimestamp }),
    };
    if (subresource === 'status') {
      return { ...before, ...(statusOf(next) === undefined ? {} : { status: statusOf(next) }) } as KubeObject;
    }
    const written = { ...next, metadata } as KubeObject & { status?: unknown };
    if (!withStatus.includes(type.plural)) return written;
    const { status: _, ...rest } = written;
    return (statusOf(before) === undefined ? rest : { ...rest, status: statusOf(before) }) as KubeObject;
  };

  /** The object as it would be stored. Throws Conflict if the name is taken. */
  const fill = (type: ResourceType, object: KubeObject): KubeObject => {
    if (type.namespaced && object.metadata.namespace === undefined)
      throw new InvalidInput('metadata.namespace is required');
    if (find(type, object.metadata) !== undefined) {
      throw new Conflict(`${type.plural} "${object.metadata.name}" already exists`);
    }
    const finalizers = [...new Set([...(object.metadata.finalizers ?? []), ...(protect[type.plural] ?? [])])];
    return {
      ...copy(object),
      apiVersion: apiVersionOf(type),
      kind: type.kind,
      metadata: {
        creationTimestamp: time(),
        generation: 1,
        ...copy(object.metadata),
        ...(finalizers.length === 0 ? {} : { finalizers }),
      },
    };
  };

  return {
    /** The latest version. */
    version: () => String(version),
    values: (): readonly Stored[] => [...objects.values()],
    onChange: (listener: (change: Change) => void): void => void listeners.push(listener),
    find,
    mustFind: (type: ResourceType, key: ObjectKey): Stored => {
      const stored = find(type, key);
      if (stored === undefined) throw new NotFound(`${type.plural} "${key.name}" not found`);
      return stored;
    },
    of: (type: ResourceType): readonly Stored[] => [...objects.values()].filter((stored) => isOf(type, stored)),
    put,
    merge,
    checkVersion,
    /** A new object without fields that users may not set. */
    withoutStatus: (type: ResourceType, object: KubeObject): KubeObject => {
      const { status: _, ...rest } = object as KubeObject & { status?: unknown };
      return withStatus.includes(type.plural) ? (rest as KubeObject) : object;
    },
    fill,
    insert: (type: ResourceType, object: KubeObject): KubeObject => {
      const filled = fill(type, object);
      const { uid = nextUid() } = object.metadata;
      const stored = { ...filled, metadata: { ...filled.metadata, uid, resourceVersion: nextVersion() } };
      objects.set(keyOf(type, stored.metadata), { type, object: stored });
      emit({ type: 'ADDED', object: stored });
      return copy(stored);
    },
    remove: (stored: Stored): void => {
      const { object } = stored;
      if (object.metadata.deletionTimestamp !== undefined) return;
      put(stored, { ...object, metadata: { ...object.metadata, deletionTimestamp: time() } });
    },
    page: (type: ResourceType, { namespace, labelSelector, limit = Infinity, ...rest }: ListOptions) => {
      const isSelected = parseLabelSelector(labelSelector);
      const matching = [...objects.entries()]
        .filter(([, stored]) => isOf(type, stored))
        .filter(([, { object }]) => namespace === undefined || object.metadata.namespace === namespace)
        .filter(([, { object }]) => isSelected(object.metadata.labels))
        .filter(([, { object }]) => selectsFields(rest.fieldSelector, object))
        .sort(([a], [b]) => (a < b ? -1 : 1))
        .filter(([key]) => rest.continue === undefined || key > rest.continue);
      const items = matching.slice(0, limit);
      const more = matching.length > items.length ? { continue: items.at(-1)?.[0] ?? '' } : {};
      return {
        metadata: { resourceVersion: String(version), ...more },
        items: items.map(([, { object }]) => copy(object)),
      };
    },
  };
};
