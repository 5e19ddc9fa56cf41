// The controllers of kube-apiserver for CustomResourceDefinitions: they accept their names, establish them, and delete their objects before them.
import { clone, isSame } from '../objects/equal.ts';
import { type ApiObject, type Fields, fieldsAt, listAt, textAt, toText } from '../objects/object.ts';
import type { Change, Entry, Key } from '../store/change.ts';
import type { Store } from '../store/store.ts';
import { crdCollection } from './registry.ts';
import { collectionOf } from './resource.ts';

const cleanup = 'customresourcecleanup.apiextensions.k8s.io';
const batch = 200;

interface Condition extends Fields {
  readonly type: string;
  readonly status: 'True' | 'False';
  readonly reason: string;
  readonly message: string;
}

const withCondition = (conditions: readonly Fields[], wanted: Condition, now: string): Fields[] => {
  const old = conditions.find((condition) => condition['type'] === wanted.type);
  const since = old?.['status'] === wanted.status ? old['lastTransitionTime'] : now;
  const made = { ...wanted, lastTransitionTime: since };
  return old === undefined
    ? [...conditions, made]
    : conditions.map((condition) => (condition === old ? made : condition));
};

const namesOf = (crd: ApiObject): Fields => fieldsAt(fieldsAt(crd, 'spec'), 'names');
const groupOf = (crd: ApiObject): string => textAt(fieldsAt(crd, 'spec'), 'group') ?? '';

const words = (names: Fields): string[] => [
  toText(names['plural']),
  toText(names['singular']),
  ...(Array.isArray(names['shortNames']) ? names['shortNames'].map(String) : []),
];

/** The conflicts of the names with those already accepted in the group. */
const clashOf = (crd: ApiObject, others: readonly ApiObject[]): Condition | undefined => {
  const taken = others
    .filter((other) => groupOf(other) === groupOf(crd) && other.metadata.name !== crd.metadata.name)
    .map((other) => fieldsAt(fieldsAt(other, 'status'), 'acceptedNames'));
  const names = namesOf(crd);
  const word = words(names).find((item) => item !== '' && taken.some((accepted) => words(accepted).includes(item)));
  const clash = (reason: string, item: string): Condition => ({
    type: 'NamesAccepted',
    status: 'False',
    reason,
    message: `"${item}" is already in use`,
  });
  if (word !== undefined)
    return clash(
      word === names['plural']
        ? 'PluralConflict'
        : word === names['singular']
          ? 'SingularConflict'
          : 'ShortNamesConflict',
      word,
    );
  const kinds = taken.flatMap((accepted) => [accepted['kind'], accepted['listKind']]);
  // The last conflict that is found is reported.
  if (kinds.includes(names['listKind'])) return clash('ListKindConflict', toText(names['listKind']));
  return kinds.includes(names['kind']) ? clash('KindConflict', toText(names['kind'])) : undefined;
};

const accepted: Condition = {
  type: 'NamesAccepted',
  status: 'True',
  reason: 'NoConflicts',
  message: 'no conflicts found',
};
const established: Condition = {
  type: 'Established',
  status: 'True',
  reason: 'InitialNamesAccepted',
  message: 'the initial names have been accepted',
};
const notAccepted: Condition = {
  type: 'Established',
  status: 'False',
  reason: 'NotAccepted',
  message: 'not all names are accepted',
};
const deleting: Condition = {
  type: 'Terminating',
  status: 'True',
  reason: 'InstanceDeletionInProgress',
  message: 'CustomResource deletion is in progress',
};

/** The desired status of a definition. */
const settle = (crd: ApiObject, others: readonly ApiObject[], now: string): Fields => {
  const status = fieldsAt(crd, 'status');
  const before = listAt(status, 'conditions');
  const wasEstablished = before.some(
    (condition) => condition['type'] === 'Established' && condition['status'] === 'True',
  );
  const clash = clashOf(crd, others);
  let conditions = withCondition(before, clash ?? accepted, now);
  if (clash === undefined) conditions = withCondition(conditions, established, now);
  else if (!wasEstablished) conditions = withCondition(conditions, notAccepted, now);
  if (crd.metadata.deletionTimestamp !== undefined) conditions = withCondition(conditions, deleting, now);
  return {
    ...status,
    conditions,
    acceptedNames: clash === undefined ? namesOf(crd) : fieldsAt(status, 'acceptedNames'),
  };
};

export interface CrdController {
  readonly close: () => void;
}

export const startCrdController = (store: Store, clock: () => Date): CrdController => {
  const stops: (() => void)[] = [];
  const watched = new Map<string, () => void>();

  const keyOf = (name: string): Key => ({ collection: crdCollection, namespace: '', name });
  /** Read once for each version: every change of one is compared with all others. Read-only. */
  const read = new Map<string, { readonly version: number; readonly crd: ApiObject }>();
  const readOnce = (entry: Entry): ApiObject => {
    const known = read.get(entry.name);
    if (known?.version === entry.version) return known.crd;
    const crd = entry.object();
    read.set(entry.name, { version: entry.version, crd });
    return crd;
  };
  const all = (): readonly ApiObject[] =>
    store.page({ collection: crdCollection, limit: 100_000 }).entries.map(readOnce);

  /** Deletes objects without finalizers at once and marks the others; true when none are left. */
  const empty = (collection: string): boolean => {
    const now = `${clock().toISOString().slice(0, 19)}Z`;
    let after: { namespace: string; name: string } | undefined;
    let left = 0;
    for (;;) {
      const { entries } = store.page({ collection, after, limit: batch });
      for (const entry of entries) {
        const object = entry.object();
        if ((object.metadata.finalizers ?? []).length === 0) {
          store.remove(entry, entry.version, object);
          continue;
        }
        left += 1;
        if (object.metadata.deletionTimestamp !== undefined) continue;
        object.metadata.deletionTimestamp = now;
        object.metadata.deletionGracePeriodSeconds = 0;
        store.replace(entry, entry.version, object);
      }
      if (entries.length < batch) return left === 0;
      after = entries.at(-1);
    }
  };

  const release = (crd: ApiObject): void => {
    const name = crd.metadata.name ?? '';
    const entry = store.get(keyOf(name));
    if (entry === undefined) return;
    const object = entry.object();
    object.metadata.finalizers = (object.metadata.finalizers ?? []).filter((finalizer) => finalizer !== cleanup);
    watched.get(name)?.();
    watched.delete(name);
    if (object.metadata.finalizers.length === 0) store.remove(entry, entry.version, object);
    else store.replace(entry, entry.version, object);
  };

  const finish = (crd: ApiObject): void => {
    if (!(crd.metadata.finalizers ?? []).includes(cleanup)) return;
    const name = crd.metadata.name ?? '';
    const collection = collectionOf(groupOf(crd), toText(namesOf(crd)['plural']));
    if (empty(collection)) release(crd);
    else if (!watched.has(name)) {
      watched.set(
        name,
        store.subscribe(collection, () => queueMicrotask(() => reconcile(name))),
      );
    }
  };

  const reconcile = (name: string): void => {
    const entry = store.get(keyOf(name));
    if (entry === undefined) return;
    const crd = entry.object();
    const settled = clone(crd);
    settled['status'] = settle(crd, all(), `${clock().toISOString().slice(0, 19)}Z`);
    if (!isSame(settled['status'], crd['status'])) store.replace(entry, entry.version, settled);
    else if (crd.metadata.deletionTimestamp !== undefined) finish(crd);
  };

  /** A deleted definition may free names that others wait for. */
  const onChange = (change: Change): void => {
    if (change.type === 'DELETED') all().forEach((crd) => queueMicrotask(() => reconcile(crd.metadata.name ?? '')));
    else queueMicrotask(() => reconcile(change.name));
  };

  stops.push(store.subscribe(crdCollection, onChange));
  all().forEach((crd) => reconcile(crd.metadata.name ?? ''));
  return { close: () => [...stops, ...watched.values()].forEach((stop) => stop()) };
};
