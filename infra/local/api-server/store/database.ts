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
