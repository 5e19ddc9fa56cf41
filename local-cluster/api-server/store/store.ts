// Objects on disk with one global version counter: reads, compare-and-set writes, consistent pages, the change log. All calls are
// synchronous, so what a handler reads and writes without awaiting in between is atomic.
import type { ApiObject } from '../objects/object.ts';
import { type Change, type Entry, type Key, toChange } from './change.ts';
import { createRecent } from './recent.ts';
import { type Page, type PageQuery, createPages } from './pages.ts';
import { createRows } from './pages.ts';
import { type ApiError, failure } from '../status/status.ts';
import { DatabaseSync } from 'node:sqlite';

/** The SQLite file behind the store: every change is one row that is never updated, so old versions can be listed and watched. */
const schema = `
  CREATE TABLE IF NOT EXISTS revisions (
    version INTEGER PRIMARY KEY AUTOINCREMENT,
    collection TEXT NOT NULL,
    namespace TEXT NOT NULL,
    name TEXT NOT NULL,
    change INTEGER NOT NULL,
    previous INTEGER,
    body TEXT NOT NULL
  );
  CREATE INDEX IF NOT EXISTS revisions_by_key ON revisions (collection, namespace, name, version, change);
  CREATE INDEX IF NOT EXISTS revisions_by_collection ON revisions (collection, version);
  CREATE TABLE IF NOT EXISTS settings (name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
`;

/** The version of each existing object, updated by the statement that appends a revision. */
const liveSchema = `
  CREATE TABLE live (
    collection TEXT NOT NULL,
    namespace TEXT NOT NULL,
    name TEXT NOT NULL,
    version INTEGER NOT NULL,
    PRIMARY KEY (collection, namespace, name)
  ) WITHOUT ROWID;
  CREATE TRIGGER live_written AFTER INSERT ON revisions WHEN new.change <> 2 BEGIN
    INSERT OR REPLACE INTO live VALUES (new.collection, new.namespace, new.name, new.version);
  END;
  CREATE TRIGGER live_removed AFTER INSERT ON revisions WHEN new.change = 2 BEGIN
    DELETE FROM live WHERE collection = new.collection AND namespace = new.namespace AND name = new.name;
  END;
  INSERT INTO live SELECT collection, namespace, name, version FROM (
    SELECT collection, namespace, name, MAX(version) AS version, change FROM revisions GROUP BY collection, namespace, name
  ) WHERE change <> 2;
`;

/** A power cut loses at most this. Waiting for the disk at each commit would block the only thread for 4 ms each time. */
const flushMs = 1000;

/** SQLite's code for a full disk. */
const full = 13;

const isFull = (error: unknown): boolean => error instanceof Error && 'errcode' in error && error.errcode === full;

const noRoom = (file: string): ApiError =>
  failure({
    code: 507,
    reason: 'InternalError',
    message: `nothing can be written: the disk under ${file} is full; make room there, then try again. What is there can be read`,
  });

/** Work that can wait until there is space again: it is retried automatically. */
const unlessFull = (work: () => void): boolean => {
  try {
    work();
    return true;
  } catch (error) {
    if (!isFull(error)) throw error;
    return false;
  }
};

/** Flushes writes to the disk once a second, if there are any; returns a function that stops it. */
const startFlushing = (database: DatabaseSync, version: () => number): (() => void) => {
  let flushed = version();
  const timer = setInterval(() => {
    if (version() === flushed) return;
    const reached = version();
    // A checkpoint syncs the log, copies its pages into the database and syncs that.
    if (unlessFull(() => database.exec('PRAGMA wal_checkpoint(PASSIVE)'))) flushed = reached;
  }, flushMs);
  timer.unref();
  return () => clearInterval(timer);
};

/**
 * Opens (and creates) the file; `:memory:` keeps everything in memory.
 * With WAL and synchronous=NORMAL the kernel has a commit when it returns: a killed process loses nothing.
 */
const openDatabase = (file: string): DatabaseSync => {
  const database = new DatabaseSync(file);
  database.exec('PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL; PRAGMA cache_size = -16384');
  database.exec(schema);
  // A file created by an older release has no such table.
  const hasLive = database.prepare(`SELECT 1 FROM sqlite_master WHERE name = 'live'`).get() !== undefined;
  if (!hasLive) database.exec(`BEGIN; ${liveSchema} COMMIT`);
  return database;
};

export interface StoreOptions {
  /** Path of the database file, or `:memory:`. */
  readonly file: string;
  /** How far back in versions a watch or a page may start. At least this many are kept, at most twice as many. */
  readonly historyLimit?: number;
}

export interface Store {
  /** The version of the newest change. */
  readonly version: () => number;
  /** Watches cannot start at or below this version any more, except at this one itself. */
  readonly oldest: () => number;
  readonly get: (key: Key) => Entry | undefined;
  /** Undefined when the name is in use. */
  readonly create: (key: Key, object: ApiObject) => Entry | undefined;
  /** Undefined when the object is no longer at `version`. */
  readonly replace: (key: Key, version: number, object: ApiObject) => Entry | undefined;
  /** `object` is the last state, sent to watchers. Undefined when the object is no longer at `version`. */
  readonly remove: (key: Key, version: number, object: ApiObject) => Entry | undefined;
  readonly page: (query: PageQuery) => Page;
  /** Changes of a collection after `version`, oldest first. */
  readonly changesAfter: (collection: string, version: number, limit: number) => readonly Change[];
  /** Calls the listener after each commit to the collection; returns a function that removes it. */
  readonly subscribe: (collection: string, listener: (change: Change) => void) => () => void;
  /** Compacts everything before `version`, as the server does automatically over time. */
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
    // The change is already written, whatever happens to old ones.
    unlessFull(() => history.trim(change.version));
  };

  const insert: typeof rows.insert = (row) => {
    try {
      return rows.insert(row);
    } catch (error) {
      throw isFull(error) ? noRoom(file) : error;
    }
  };

  /** Writes one change if the object is still in the expected state (`expected` undefined: absent). */
  const write = (key: Key, expected: number | undefined, change: number, object: ApiObject): Entry | undefined => {
    const latest = rows.latest(key);
    if (latest?.version !== expected) return undefined;
    const body = toBody(object);
    const version = insert({ ...key, change, previous: expected ?? null, body });
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

/** Limits the change log: compacts states that were superseded long ago, and records how far back a watch may start. */
interface History {
  /** The oldest version that a watch or a page may start from. */
  readonly oldest: () => number;
  /** Called after each change; compacts once there is twice the limit. */
  readonly trim: (version: number) => void;
  readonly compact: (version: number) => void;
}

/** A state can be removed when the change that replaced it is compacted too; until then a watch needs it as the previous state. */
const superseded = `DELETE FROM revisions WHERE version IN (
  SELECT previous FROM revisions WHERE version > ? AND version <= ? AND previous IS NOT NULL)`;
const tombstones = `DELETE FROM revisions WHERE version > ? AND version <= ? AND change = 2`;

const createHistory = (database: DatabaseSync, limit: number): History => {
  const saved = database.prepare(`SELECT value FROM settings WHERE name = 'oldest'`).get();
  const save = database.prepare(`INSERT OR REPLACE INTO settings VALUES ('oldest', ?)`);
  const deleteSuperseded = database.prepare(superseded);
  const deleteTombstones = database.prepare(tombstones);
  let oldest = Number(saved?.['value'] ?? 0);

  const compact = (version: number): void => {
    if (version <= oldest) return;
    database.exec('BEGIN');
    try {
      deleteSuperseded.run(oldest, version);
      deleteTombstones.run(oldest, version);
      save.run(String(version));
      database.exec('COMMIT');
    } catch (error) {
      // SQLite has done so if the disk was full.
      if (database.isTransaction) database.exec('ROLLBACK');
      throw error;
    }
    oldest = version;
  };

  return {
    oldest: () => oldest,
    trim: (version) => {
      if (version - oldest > limit * 2) compact(version - limit);
    },
    compact,
  };
};
