// Objects on disk under one global version counter: reads, compare-and-set writes, consistent pages, the change log. All calls are
// synchronous, so what a handler reads and writes without awaiting in between is atomic.
import type { ApiObject } from '../objects/object.ts';
import { type Change, type Entry, type Key, toChange } from './change.ts';
import { openDatabase, startFlushing } from './database.ts';
import { createRecent } from './recent.ts';
import { type Page, type PageQuery, createPages } from './pages.ts';
import { createHistory } from './history.ts';
import { createRows } from './rows.ts';

export interface StoreOptions {
  /** Path of the database file, or `:memory:`. */
  readonly file: string;
  /** How many versions back a watch or a page may reach. At least this many are kept, at most twice as many. */
  readonly historyLimit?: number;
}

export interface Store {
  /** The version of the newest change. */
  readonly version: () => number;
  /** Versions at or below this one can no longer be watched from, except this one itself. */
  readonly oldest: () => number;
  readonly get: (key: Key) => Entry | undefined;
  /** Undefined when the name is taken. */
  readonly create: (key: Key, object: ApiObject) => Entry | undefined;
  /** Undefined when the object is no longer at `version`. */
  readonly replace: (key: Key, version: number, object: ApiObject) => Entry | undefined;
  /** `object` is the last state, shown to watchers. Undefined when the object is no longer at `version`. */
  readonly remove: (key: Key, version: number, object: ApiObject) => Entry | undefined;
  readonly page: (query: PageQuery) => Page;
  /** Changes of a collection after `version`, oldest first. */
  readonly changesAfter: (collection: string, version: number, limit: number) => readonly Change[];
  /** Calls back after each commit to the collection; returns the way to stop. */
  readonly subscribe: (collection: string, listener: (change: Change) => void) => () => void;
  /** Forgets everything before `version`, as the server does by itself in time. */
  readonly compact: (version: number) => void;
  readonly close: () => void;
}

const recentCapacity = { changes: 1000, characters: 8_000_000 };

export const createStore = ({ file, historyLimit = 10_000 }: StoreOptions): Store => {
  const database = openDatabase(file);
  const rows = createRows(database);
  const pages = createPages(database, rows);
  const history = createHistory(database, historyLimit);
  const recent = createRecent(rows.newestVersion(), recentCapacity);
  const listeners = new Map<string, Set<(change: Change) => void>>();
  const stopFlushing = startFlushing(database, rows.newestVersion);

  const publish = (change: Change): void => {
    recent.push(change);
    for (const listener of listeners.get(change.collection) ?? []) listener(change);
    history.trim(change.version);
  };

  /** Writes one change if the object still is where the caller saw it (`expected` undefined: absent). */
  const write = (key: Key, expected: number | undefined, change: number, object: ApiObject): Entry | undefined => {
    const latest = rows.latest(key);
    if (latest?.version !== expected) return undefined;
    const body = toBody(object);
    const version = rows.insert({ ...key, change, previous: expected ?? null, body });
    const written = toChange({ ...key, version, change, body, previousBody: latest?.body });
    publish(written);
    return written;
  };

  return {
    version: rows.newestVersion,
    oldest: history.oldest,
    get: (key) => {
      const row = rows.latest(key);
      return row === undefined ? undefined : toChange({ ...row, previousBody: undefined });
    },
    create: (key, object) => write(key, undefined, 0, object),
    replace: (key, version, object) => write(key, version, 1, object),
    remove: (key, version, object) => write(key, version, 2, object),
    page: pages.page,
    changesAfter: (collection, version, limit) =>
      recent.after(collection, version, limit) ?? rows.changesAfter(collection, version, limit),
    subscribe: (collection, listener) => {
      const set = listeners.get(collection) ?? new Set();
      listeners.set(collection, set.add(listener));
      return () => {
        set.delete(listener);
        if (set.size === 0) listeners.delete(collection);
      };
    },
    compact: history.compact,
    close: () => {
      stopFlushing();
      database.close();
    },
  };
};

const toBody = (object: ApiObject): string => {
  const { resourceVersion: _, ...metadata } = object.metadata;
  return JSON.stringify({ ...object, metadata });
};
