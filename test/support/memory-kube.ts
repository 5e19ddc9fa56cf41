// An in-memory KubeClient for unit tests and the fault simulation: small, but faithful in what plans rely on (versions, conflicts, UIDs,
// finalizers, the status subresource, watches). Everything it does not model throws, so that no test passes by accident.
import type { KubeObject, ObjectKey, ResourceType } from '#shared/api/object.ts';
import type { DeleteOptions, KubeClient, PatchOptions } from '#shared/clients/kube/client.ts';
import { Conflict, NotFound } from '#shared/runtime/errors.ts';
import { applyMergePatch } from './memory-kube/select.ts';
import { type Change, type Store, type Stored, type StoreOptions, copy, createStore } from './memory-kube/store.ts';
import { type Watches, createWatches } from './memory-kube/watches.ts';

export type { Change } from './memory-kube/store.ts';

export type Verb = 'get' | 'list' | 'create' | 'replace' | 'patch' | 'delete' | 'watch';

export interface KubeCall {
  readonly verb: Verb;
  /** Plural of the kind, and the subresource after a slash. */
  readonly resource: string;
  readonly name?: string | undefined;
}

/** A failing call: before any effect, or after its effect, as when the answer is lost. */
export interface KubeFault {
  readonly error: Error;
  readonly when: 'before' | 'after';
}

/** A write before it is stored, as seen by admission. */
export interface AdmissionRequest {
  readonly operation: 'CREATE' | 'UPDATE' | 'DELETE';
  readonly type: ResourceType;
  readonly subresource?: string | undefined;
  readonly user: string;
  /** Undefined for deletions. */
  readonly object?: KubeObject;
  /** Undefined for creations. */
  readonly old?: KubeObject;
}

export interface MemoryKube extends KubeClient {
  /** Every call so far. */
  readonly calls: KubeCall[];
  /** The same API for another user, for admission. */
  as(user: string): KubeClient;
  readonly watches: Watches;
  /** The next matching call fails. */
  failNext(match: Partial<KubeCall>, fault: KubeFault): void;
  /** Called after each change, in order. */
  onChange(listener: (change: Change) => void): void;
  /** All objects, of one kind or of all. */
  all<T extends KubeObject>(type?: ResourceType<T>): readonly T[];
  /** Stores an object unchanged, with the fields that the API server sets; for the environment of the code under test. */
  seed<T extends KubeObject>(type: ResourceType<T>, object: T): T;
  /** Changes an object, including its status; no effect if it is gone. */
  edit<T extends KubeObject>(type: ResourceType<T>, key: ObjectKey, change: (object: Mutable<T>) => void): void;
  /** Deletes like the garbage collector: children all of whose owners are gone. Returns their number. */
  collectGarbage(): number;
}

export type Mutable<T> = T extends object ? { -readonly [K in keyof T]: Mutable<T[K]> } : T;

export interface MemoryKubeOptions extends Partial<StoreOptions> {
  /** Throws to reject a write. Default: all are accepted. */
  readonly admit?: ((request: AdmissionRequest) => void) | undefined;
  /** Plurals that the cluster does not serve. */
  readonly absent?: readonly string[];
  readonly uidPrefix?: string | undefined;
}

const administrator = 'kubernetes-admin';
const garbageCollector = 'system:serviceaccount:kube-system:generic-garbage-collector';

const notModelled = (what: string) => () => {
  throw new Error(`memory-kube does not model ${what}`);
};

const resourceOf = (type: ResourceType, { subresource }: PatchOptions = {}): string =>
  subresource === undefined ? type.plural : `${type.plural}/${subresource}`;

export const createMemoryKube = (options: MemoryKubeOptions = {}): MemoryKube => {
  const {
    now = Date.now,
    withStatus = [
      'virtualmachineimages',
      'virtualmachinepvcs',
      'virtualmachinevolumes',
      'virtualmachinevolumeexports',
      'datavolumes',
    ],
    protect = {},
    admit = () => {},
    absent = [],
  } = options;
  const store = createStore({ now, withStatus, protect, uidPrefix: options.uidPrefix });
  const calls: KubeCall[] = [];
  const call = createCalls(calls, absent);
  const { watch, watches } = createWatches(store);
  const as = (user: string) => createClient({ store, call: call.run, watch, admit, user });
  return {
    ...as(administrator),
    as,
    calls,
    watches,
    failNext: call.failNext,
    onChange: store.onChange,
    all: (type) => (type === undefined ? store.values() : store.of(type)).map(({ object }) => object) as never,
    seed: (type, object) => store.insert(type, object) as never,
    edit: (type, key, change) => {
      const stored = store.find(type, key);
      if (stored === undefined) return;
      const next = copy(stored.object);
      change(next as never);
      store.put(stored, next);
    },
    collectGarbage: () => orphansIn(store).filter((orphan) => collect(store, orphan, admit)).length,
  };
};

const orphansIn = (store: Store): readonly Stored[] => {
  const alive = new Set(store.values().map(({ object }) => object.metadata.uid));
  return store.values().filter(({ object: { metadata } }) => {
    const owners = metadata.ownerReferences ?? [];
    return metadata.deletionTimestamp === undefined && owners.length > 0 && owners.every(({ uid }) => !alive.has(uid));
  });
};

/** Whether it could be deleted; rejected deletions are retried. */
const collect = (store: Store, orphan: Stored, admit: (request: AdmissionRequest) => void): boolean => {
  try {
    admit({ operation: 'DELETE', type: orphan.type, user: garbageCollector, old: orphan.object });
  } catch {
    return false;
  }
  store.remove(orphan);
  return true;
};

/** Records calls and fails them if a test requested it, or if the kind is not served. */
const createCalls = (calls: KubeCall[], absent: readonly string[]) => {
  const pending: { match: Partial<KubeCall>; fault: KubeFault }[] = [];
  return {
    failNext: (match: Partial<KubeCall>, fault: KubeFault): void => void pending.push({ match, fault }),
    run: async <R>(what: KubeCall, effect: () => R): Promise<R> => {
      calls.push(what);
      if (what.verb !== 'get' && absent.includes(what.resource)) throw new NotFound(`no ${what.resource} are served`);
      const index = pending.findIndex(({ match }) =>
        Object.entries(match).every(([field, value]) => what[field as keyof KubeCall] === value),
      );
      const [hit] = index < 0 ? [] : pending.splice(index, 1);
      if (hit?.fault.when === 'before') throw hit.fault.error;
      const result = effect();
      if (hit !== undefined) throw hit.fault.error;
      return result;
    },
  };
};

interface ClientParts {
  readonly store: Store;
  readonly call: <R>(what: KubeCall, effect: () => R) => Promise<R>;
  readonly watch: ReturnType<typeof createWatches>['watch'];
  readonly admit: (request: AdmissionRequest) => void;
  readonly user: string;
}

const createClient = ({ store, call, watch, admit, user }: ClientParts): KubeClient => {
  const write = (stored: Stored, next: KubeObject, subresource: string | undefined): KubeObject => {
    const merged = copy(store.merge(stored, next, subresource));
    admit({ operation: 'UPDATE', type: stored.type, subresource, user, object: merged, old: stored.object });
    return store.put(stored, merged);
  };
  const client: KubeClient = {
    server: 'https://memory',
    get: (type, key) =>
      call({ verb: 'get', resource: type.plural, name: key.name }, () => {
        const stored = store.find(type, key);
        return stored === undefined ? undefined : (copy(stored.object) as never);
      }),
    list: (type, options = {}) =>
      call({ verb: 'list', resource: type.plural }, () => store.page(type, options) as never),
    listAll: async function* listAll(type, options = {}) {
      let next: string | undefined;
      do {
        const more = next === undefined ? {} : { continue: next };
        const page = await client.list(type, { limit: 100, ...options, ...more });
        yield* page.items;
        next = page.metadata.continue;
      } while (next !== undefined);
    },
    create: (type, object) =>
      call({ verb: 'create', resource: type.plural, name: object.metadata.name }, () => {
        const kept = store.withoutStatus(type, object);
        admit({ operation: 'CREATE', type, user, object: store.fill(type, kept) });
        return store.insert(type, kept) as never;
      }),
    replace: (type, object, options = {}) => {
      const what = { verb: 'replace', resource: resourceOf(type, options), name: object.metadata.name } as const;
      return call(what, () => {
        const stored = store.mustFind(type, object.metadata);
        store.checkVersion(stored.object, object);
        return write(stored, object, options.subresource) as never;
      });
    },
    mergePatch: (type, key, patch, options = {}) => {
      return call({ verb: 'patch', resource: resourceOf(type, options), name: key.name }, () => {
        const stored = store.mustFind(type, key);
        const { resourceVersion, uid } = (patch as Partial<KubeObject>).metadata ?? {};
        const asked = { name: key.name, ...(resourceVersion && { resourceVersion }), ...(uid && { uid }) };
        store.checkVersion(stored.object, { ...stored.object, metadata: asked });
        return write(stored, applyMergePatch(stored.object, patch) as KubeObject, options.subresource) as never;
      });
    },
    delete: (type, key, { uid, resourceVersion }: DeleteOptions = {}) =>
      call({ verb: 'delete', resource: type.plural, name: key.name }, () => {
        const stored = store.find(type, key);
        if (stored === undefined) return;
        if (uid !== undefined && uid !== stored.object.metadata.uid)
          throw new Conflict('the UID is that of another object');
        if (resourceVersion !== undefined && resourceVersion !== stored.object.metadata.resourceVersion)
          throw new Conflict('the object was changed');
        admit({ operation: 'DELETE', type, user, old: stored.object });
        store.remove(stored);
      }),
    watch: (type, options) => watch(type, options) as never,
    jsonPatch: notModelled('JSON patch'),
    apply: notModelled('server-side apply'),
    logs: notModelled('logs'),
    raw: notModelled('raw requests'),
  };
  return client;
};
