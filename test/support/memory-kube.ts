// An in-memory KubeClient for unit tests and the fault simulation: small, and honest about what plans rely on (versions, conflicts,
// UIDs, finalizers, the status subresource). What it does not model throws, so that no test passes on a guess.
import { isDeepStrictEqual } from 'node:util';
import { type KubeObject, type ObjectKey, type ResourceType, apiVersionOf } from '#shared/api/object.ts';
import type { DeleteOptions, KubeClient, ListOptions, PatchOptions, WatchEvent } from '#shared/clients/kube/client.ts';
import { Conflict, InvalidInput, NotFound } from '#shared/runtime/errors.ts';

export type Verb = 'get' | 'list' | 'create' | 'replace' | 'patch' | 'delete' | 'watch';

export interface KubeCall {
  readonly verb: Verb;
  /** Plural of the kind, and the subresource after a slash. */
  readonly resource: string;
  readonly name?: string | undefined;
}

/** A call that fails: before it did anything, or after its effect, as when the answer is lost. */
export interface KubeFault {
  readonly error: Error;
  readonly when: 'before' | 'after';
}

export interface Change {
  readonly type: 'ADDED' | 'MODIFIED' | 'DELETED';
  readonly object: KubeObject;
}

export interface MemoryKube extends KubeClient {
  /** Every call so far. */
  readonly calls: KubeCall[];
  /** The next call that matches fails. */
  failNext(match: Partial<KubeCall>, fault: KubeFault): void;
  /** Called after each change, in order. */
  onChange(listener: (change: Change) => void): void;
  /** Every object there is, of one kind or of all. */
  all<T extends KubeObject>(type?: ResourceType<T>): readonly T[];
  /** Puts an object in as it is, filling in what the API server would; for the world around the code under test. */
  seed<T extends KubeObject>(type: ResourceType<T>, object: T): T;
  /** Changes an object behind everybody's back, status and all; nothing when it is gone. */
  edit<T extends KubeObject>(type: ResourceType<T>, key: ObjectKey, change: (object: Mutable<T>) => void): void;
  /** Deletes what the garbage collector would: children all of whose owners are gone. Gives how many. */
  collectGarbage(): number;
}

export type Mutable<T> = T extends object ? { -readonly [K in keyof T]: Mutable<T[K]> } : T;

export interface MemoryKubeOptions {
  /** Milliseconds since the epoch. */
  readonly now?: () => number;
  /** Plurals whose status is a subresource; others take status like any field. */
  readonly withStatus?: readonly string[];
  /** Finalizers the API server's plugins add at creation, by plural. */
  readonly protect?: Readonly<Record<string, readonly string[]>>;
}

interface Stored {
  readonly type: ResourceType;
  object: KubeObject;
}

const copy = <T>(value: T): T => structuredClone(value);

const keyOf = (type: ResourceType, { namespace, name }: ObjectKey): string =>
  [type.group, type.plural, type.namespaced ? (namespace ?? '') : '', name].join('|');

/** RFC 7386. */
export const applyMergePatch = (target: unknown, patch: unknown): unknown => {
  if (typeof patch !== 'object' || patch === null || Array.isArray(patch)) return patch;
  const result: Record<string, unknown> =
    typeof target === 'object' && target !== null && !Array.isArray(target) ? { ...target } : {};
  for (const [key, value] of Object.entries(patch)) {
    if (value === null) delete result[key];
    else if (value !== undefined) result[key] = applyMergePatch(result[key], value);
  }
  return result;
};

const selects = (selector: string | undefined, labels: Readonly<Record<string, string>> = {}): boolean =>
  (selector ?? '')
    .split(',')
    .filter((part) => part !== '')
    .every((part) => {
      const [key = '', value] = part.split('=');
      return value === undefined ? key in labels : labels[key] === value;
    });

/** `a.b=c` on any field, as far as tests need it. */
const selectsFields = (selector: string | undefined, object: KubeObject): boolean =>
  (selector ?? '')
    .split(',')
    .filter((part) => part !== '')
    .every((part) => {
      const [path = '', value = ''] = part.split('=');
      const found = path.split('.').reduce<unknown>((at, key) => (at as Record<string, unknown>)?.[key], object);
      return (found ?? '') === value;
    });

const notModelled = (what: string) => () => {
  throw new Error(`memory-kube does not model ${what}`);
};

export const createMemoryKube = (options: MemoryKubeOptions = {}): MemoryKube => {
  const {
    now = Date.now,
    withStatus = ['virtualmachineimages', 'virtualmachinepvcs', 'virtualmachinevolumes', 'datavolumes'],
    protect = {},
  } = options;
  const store = new Map<string, Stored>();
  const listeners: ((change: Change) => void)[] = [];
  const calls: KubeCall[] = [];
  const pendingFaults: { match: Partial<KubeCall>; fault: KubeFault }[] = [];
  let version = 0;
  let uids = 0;

  const time = () => new Date(now()).toISOString().replace(/\.\d{3}Z$/, 'Z');
  const nextUid = () => `00000000-0000-4000-8000-${String((uids += 1)).padStart(12, '0')}`;
  const emit = (type: Change['type'], object: KubeObject) => {
    // Stored objects are replaced, never changed, so that they can be handed out as they are.
    for (const listener of listeners) listener({ type, object });
  };
  const find = (type: ResourceType, key: ObjectKey) => store.get(keyOf(type, key));
  const mustFind = (type: ResourceType, key: ObjectKey): Stored => {
    const stored = find(type, key);
    if (stored === undefined) throw new NotFound(`${type.plural} "${key.name}" not found`);
    return stored;
  };
  const isGone = ({ metadata }: KubeObject) =>
    metadata.deletionTimestamp !== undefined && (metadata.finalizers ?? []).length === 0;

  /** Stores a changed object: nothing when nothing changed, removal when its last finalizer went. */
  const put = (stored: Stored, next: KubeObject): KubeObject => {
    const before = stored.object;
    const same = { ...next, metadata: { ...next.metadata, resourceVersion: before.metadata.resourceVersion! } };
    if (isDeepStrictEqual(same, before)) return copy(before);
    const specOf = (object: KubeObject) => (object as { spec?: unknown }).spec;
    const bump = isDeepStrictEqual(specOf(before), specOf(next)) ? 0 : 1;
    const generation = (before.metadata.generation ?? 1) + bump;
    const object = { ...next, metadata: { ...next.metadata, generation, resourceVersion: String((version += 1)) } };
    if (isGone(object)) {
      store.delete(keyOf(stored.type, object.metadata));
      emit('DELETED', object);
    } else {
      stored.object = object;
      emit('MODIFIED', object);
    }
    return copy(object);
  };

  const checkVersion = (before: KubeObject, next: KubeObject) => {
    const { resourceVersion, uid } = next.metadata;
    if (resourceVersion !== undefined && resourceVersion !== before.metadata.resourceVersion) {
      throw new Conflict(`${before.kind} "${before.metadata.name}" has been modified`);
    }
    if (uid !== undefined && uid !== before.metadata.uid) {
      throw new InvalidInput(`metadata.uid: ${uid}: field is immutable`);
    }
  };

  /** What a write to the main resource or to its status may change. */
  const merge = (type: ResourceType, before: KubeObject, next: KubeObject, subresource?: string): KubeObject => {
    const metadata = {
      ...next.metadata,
      uid: before.metadata.uid!,
      creationTimestamp: before.metadata.creationTimestamp!,
      ...(before.metadata.deletionTimestamp === undefined
        ? {}
        : { deletionTimestamp: before.metadata.deletionTimestamp }),
    };
    const status = (object: KubeObject) => (object as { status?: unknown }).status;
    if (subresource === 'status')
      return { ...before, ...(status(next) === undefined ? {} : { status: status(next) }) } as KubeObject;
    const written = { ...next, metadata } as KubeObject & { status?: unknown };
    if (!withStatus.includes(type.plural)) return written;
    const { status: _, ...rest } = written;
    return (status(before) === undefined ? rest : { ...rest, status: status(before) }) as KubeObject;
  };

  const insert = (type: ResourceType, object: KubeObject): KubeObject => {
    if (type.namespaced && object.metadata.namespace === undefined)
      throw new InvalidInput('metadata.namespace is required');
    if (find(type, object.metadata) !== undefined) {
      throw new Conflict(`${type.plural} "${object.metadata.name}" already exists`);
    }
    const finalizers = [...new Set([...(object.metadata.finalizers ?? []), ...(protect[type.plural] ?? [])])];
    const stored: KubeObject = {
      ...copy(object),
      apiVersion: apiVersionOf(type),
      kind: type.kind,
      metadata: {
        creationTimestamp: time(),
        generation: 1,
        ...copy(object.metadata),
        uid: object.metadata.uid ?? nextUid(),
        resourceVersion: String((version += 1)),
        ...(finalizers.length === 0 ? {} : { finalizers }),
      },
    };
    store.set(keyOf(type, stored.metadata), { type, object: stored });
    emit('ADDED', stored);
    return copy(stored);
  };

  const removeStored = (stored: Stored) => {
    const { object } = stored;
    if (object.metadata.deletionTimestamp !== undefined) return;
    put(stored, { ...object, metadata: { ...object.metadata, deletionTimestamp: time() } });
  };

  /** Records the call and fails it where a test asked for that. */
  const call = async <R>(what: KubeCall, effect: () => R): Promise<R> => {
    calls.push(what);
    const index = pendingFaults.findIndex(({ match }) =>
      Object.entries(match).every(([field, value]) => what[field as keyof KubeCall] === value),
    );
    const [hit] = index < 0 ? [] : pendingFaults.splice(index, 1);
    if (hit?.fault.when === 'before') throw hit.fault.error;
    const result = effect();
    if (hit !== undefined) throw hit.fault.error;
    return result;
  };

  const resourceOf = (type: ResourceType, { subresource }: PatchOptions = {}) =>
    subresource === undefined ? type.plural : `${type.plural}/${subresource}`;

  const page = (type: ResourceType, { namespace, labelSelector, limit = Infinity, ...rest }: ListOptions) => {
    const matching = [...store.entries()]
      .filter(([, { type: of }]) => of.plural === type.plural && of.group === type.group)
      .filter(([, { object }]) => namespace === undefined || object.metadata.namespace === namespace)
      .filter(([, { object }]) => selects(labelSelector, object.metadata.labels))
      .filter(([, { object }]) => selectsFields(rest.fieldSelector, object))
      .sort(([a], [b]) => (a < b ? -1 : 1))
      .filter(([key]) => rest.continue === undefined || key > rest.continue);
    const items = matching.slice(0, limit);
    const more = matching.length > items.length ? { continue: items.at(-1)?.[0] ?? '' } : {};
    return {
      metadata: { resourceVersion: String(version), ...more },
      items: items.map(([, { object }]) => copy(object)),
    };
  };

  const kube: Omit<MemoryKube, 'listAll' | 'watch'> & Pick<KubeClient, 'listAll' | 'watch'> = {
    server: 'https://memory',
    calls,
    failNext: (match, fault) => void pendingFaults.push({ match, fault }),
    onChange: (listener) => void listeners.push(listener),
    all: (type) =>
      [...store.values()]
        .filter(
          (stored) => type === undefined || (stored.type.plural === type.plural && stored.type.group === type.group),
        )
        .map(({ object }) => object) as never,
    seed: (type, object) => insert(type as unknown as ResourceType, object) as never,
    edit: (type, key, change) => {
      const stored = find(type as unknown as ResourceType, key);
      if (stored === undefined) return;
      const next = copy(stored.object);
      change(next as never);
      put(stored, next);
    },
    collectGarbage: () => {
      const alive = new Set([...store.values()].map(({ object }) => object.metadata.uid));
      const orphans = [...store.values()].filter(({ object }) => {
        const owners = object.metadata.ownerReferences ?? [];
        const isDeleting = object.metadata.deletionTimestamp !== undefined;
        return !isDeleting && owners.length > 0 && owners.every(({ uid }) => !alive.has(uid));
      });
      for (const orphan of orphans) removeStored(orphan);
      return orphans.length;
    },
    get: (type, key) =>
      call({ verb: 'get', resource: type.plural, name: key.name }, () => {
        const stored = find(type as unknown as ResourceType, key);
        return stored === undefined ? undefined : (copy(stored.object) as never);
      }),
    list: (type, listOptions = {}) =>
      call({ verb: 'list', resource: type.plural }, () => page(type as unknown as ResourceType, listOptions) as never),
    listAll: async function* listAll(type, listOptions = {}) {
      let next: string | undefined;
      do {
        const result = await kube.list(type, {
          limit: 100,
          ...listOptions,
          ...(next === undefined ? {} : { continue: next }),
        });
        yield* result.items;
        next = result.metadata.continue;
      } while (next !== undefined);
    },
    create: (type, object) =>
      call({ verb: 'create', resource: type.plural, name: object.metadata.name }, () => {
        const { status: _, ...rest } = object as KubeObject & { status?: unknown };
        const kept = withStatus.includes(type.plural) ? (rest as KubeObject) : object;
        return insert(type as unknown as ResourceType, kept) as never;
      }),
    replace: (type, object, patchOptions = {}) =>
      call(
        {
          verb: 'replace',
          resource: resourceOf(type as unknown as ResourceType, patchOptions),
          name: object.metadata.name,
        },
        () => {
          const erased = type as unknown as ResourceType;
          const stored = mustFind(erased, object.metadata);
          checkVersion(stored.object, object);
          return put(stored, copy(merge(erased, stored.object, object, patchOptions.subresource))) as never;
        },
      ),
    mergePatch: (type, key, patch, patchOptions = {}) =>
      call(
        { verb: 'patch', resource: resourceOf(type as unknown as ResourceType, patchOptions), name: key.name },
        () => {
          const erased = type as unknown as ResourceType;
          const stored = mustFind(erased, key);
          const { resourceVersion, uid } = (patch as Partial<KubeObject>).metadata ?? {};
          const asked = { name: key.name, ...(resourceVersion && { resourceVersion }), ...(uid && { uid }) };
          checkVersion(stored.object, { ...stored.object, metadata: asked });
          const next = applyMergePatch(stored.object, patch) as KubeObject;
          return put(stored, copy(merge(erased, stored.object, next, patchOptions.subresource))) as never;
        },
      ),
    delete: (type, key, { uid }: DeleteOptions = {}) =>
      call({ verb: 'delete', resource: type.plural, name: key.name }, () => {
        const stored = find(type, key);
        if (stored === undefined) return;
        if (uid !== undefined && uid !== stored.object.metadata.uid)
          throw new Conflict('the UID is that of another object');
        removeStored(stored);
      }),
    watch: async function* watch(type, { signal, namespace, labelSelector }) {
      const queue: WatchEvent<never>[] = [];
      let wake = () => {};
      listeners.push(({ type: change, object }) => {
        if (object.kind !== type.kind || object.apiVersion !== apiVersionOf(type)) return;
        if (namespace !== undefined && object.metadata.namespace !== namespace) return;
        if (!selects(labelSelector, object.metadata.labels)) return;
        queue.push({ type: change, object: object as never });
        wake();
      });
      signal.addEventListener('abort', () => wake(), { once: true });
      while (!signal.aborted) {
        const event = queue.shift();
        if (event !== undefined) yield event;
        else await new Promise<void>((resolve) => (wake = resolve));
      }
    },
    jsonPatch: notModelled('JSON patch'),
    apply: notModelled('server-side apply'),
    raw: notModelled('raw requests'),
  };
  return kube;
};
