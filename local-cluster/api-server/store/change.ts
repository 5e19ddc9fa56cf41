// One change of one object, as stored and as delivered by watches.
import type { ApiObject } from '../objects/object.ts';

export type ChangeType = 'ADDED' | 'MODIFIED' | 'DELETED';

/** The order matters: the database stores the index. */
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
  /** A new copy of the object, with its resourceVersion set. */
  readonly object: () => ApiObject;
}

export interface Change extends Entry {
  readonly type: ChangeType;
  /** The previous state, with the version of this change; undefined for an added object. */
  readonly previous: () => ApiObject | undefined;
  /** Characters of both states. */
  readonly size: number;
  /** Cache for what watchers derive from this change, so that it is serialized and encoded once for a thousand of them. Read-only. */
  readonly rendered: Map<string, Uint8Array>;
}

/** Parses a stored body; the version is stored separately and set here. */
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
