// The SQLite file behind the store: every change is one row that is never updated, so old versions can be listed and watched.
import { DatabaseSync } from 'node:sqlite';

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

/** A power cut costs at most this. Waiting for the disk at each commit would cost 4 ms of the one thread each time. */
const flushMs = 1000;

/** Flushes what was written to the disk once a second, while there is something; returns the way to stop. */
export const startFlushing = (database: DatabaseSync, version: () => number): (() => void) => {
  let flushed = version();
  const timer = setInterval(() => {
    if (version() === flushed) return;
    flushed = version();
    // A checkpoint syncs the log, moves its pages into the database and syncs that.
    database.exec('PRAGMA wal_checkpoint(PASSIVE)');
  }, flushMs);
  timer.unref();
  return () => clearInterval(timer);
};

/**
 * Opens (and creates) the file; `:memory:` keeps everything in memory.
 * With WAL and synchronous=NORMAL a commit is in the kernel's hands when it returns: the death of this process loses nothing.
 */
export const openDatabase = (file: string): DatabaseSync => {
  const database = new DatabaseSync(file);
  database.exec('PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL; PRAGMA cache_size = -16384');
  database.exec(schema);
  return database;
};
