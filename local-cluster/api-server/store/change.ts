// One change of one object, as the store records it and watches deliver it.
import type { ApiObject } from '../objects/object.ts';

export type ChangeType = 'ADDED' | 'MODIFIED' | 'DELETED';

/** Order matters: the index is what the database holds. */
export const changeTypes: readonly ChangeType[] = ['ADDED', 'MODIFIED', 'DELETED'];

export interface Key {
  /** `<plural>` or `<plural>.<group>`. */
  readonly collection: string;
  /** Empty for cluster-scoped objects. */
  readonly namespace: string;
  readonly name: string;
}

/** One stored state of one object. */
export interface Entry extends Key {
  readonly version: number;
  /** A fresh copy of the object, its resourceVersion set. */
  readonly object: () => ApiObject;
}

export interface Change extends Entry {
  readonly type: ChangeType;
  /** The state before, under the version of this change; undefined for an added object. */
  readonly previous: () => ApiObject | undefined;
  /** Characters of both states. */
  readonly size: number;
  /** Room for what watchers make of this change, so that it is serialised and encoded once for a thousand of them. Never to be written to. */
  readonly rendered: Map<string, Uint8Array>;
}

/** Parses a stored body; the version lives beside it and is put in here. */
export const parseBody = (body: string, version: number): ApiObject => {
  const object = JSON.parse(body) as ApiObject;
  object.metadata.resourceVersion = String(version);
  return object;
};

interface Row extends Key {
  readonly version: number;
  readonly change: number;
  readonly body: string;
  readonly previousBody: string | undefined;
}

export const toChange = (row: Row): Change => ({
  collection: row.collection,
  namespace: row.namespace,
  name: row.name,
  version: row.version,
  type: changeTypes[row.change] ?? 'MODIFIED',
  object: () => parseBody(row.body, row.version),
  previous: () => (row.previousBody === undefined ? undefined : parseBody(row.previousBody, row.version)),
  size: row.body.length + (row.previousBody?.length ?? 0),
  rendered: new Map(),
});
